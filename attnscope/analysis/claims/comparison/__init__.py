"""One word held against itself."""
