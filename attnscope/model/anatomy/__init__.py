"""Find a model's attention in its modules and their code, not in a list of architectures."""
