"""What is said about a place: hover and signature help."""
