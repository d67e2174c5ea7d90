"""Weights between words, and without special tokens."""
