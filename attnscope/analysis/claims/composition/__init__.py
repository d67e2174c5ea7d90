"""How much of what a later head reads an earlier one has written: from weights, without a text."""
