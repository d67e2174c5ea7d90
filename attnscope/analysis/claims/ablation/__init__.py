"""What heads do to a model's answer: by taking them away, and by gradients that foretell it."""
