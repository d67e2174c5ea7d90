"""Which token a position of a layer stands for: exchange tokens, and look at what changes."""
