"""A model from outside, before any weight is read: its towers and layers, and what one head would cost."""
