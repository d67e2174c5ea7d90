"""Which words stand for which, and when they are heard, by cross-attention, held against gold."""
