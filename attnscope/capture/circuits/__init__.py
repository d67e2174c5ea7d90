"""Matrices of heads and the way from one head's output to another's input: found and read back."""
