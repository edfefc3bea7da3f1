"""Sandboxes that wait for a call: what a call and a sandbox must agree on, the programs that wait inside, the pool."""
