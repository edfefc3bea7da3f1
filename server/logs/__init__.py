"""Logs of messages: records from a stream in bounded memory, read by several processes at once. Must not run a call or know a face."""
