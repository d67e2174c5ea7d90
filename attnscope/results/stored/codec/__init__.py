"""What every stored result is made of: strict JSON, checked values and arrays, tokens, special tokens."""
