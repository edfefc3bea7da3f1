"""TAM: numbered steps of delimited values (seed 002)."""
