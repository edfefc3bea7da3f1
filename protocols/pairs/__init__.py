"""What TAM and VCP share: blocks of keys and delimited values, read tolerantly."""
