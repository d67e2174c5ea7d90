"""What every result is made of: where it came from, how it is presented, its special tokens, its words."""
