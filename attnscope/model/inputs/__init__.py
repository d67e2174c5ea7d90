"""Text in, what a model reads out: tokens, mask, target, and what it goes on with."""
