"""What a model answers, and what becomes of it where heads or parts are replaced."""
