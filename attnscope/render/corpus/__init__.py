"""Measures of heads over a corpus, and over two of them."""
