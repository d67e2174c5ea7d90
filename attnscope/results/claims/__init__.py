"""Claims about heads, each beside its control: which heads do it, and does the model use them."""
