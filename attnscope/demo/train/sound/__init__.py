"""Synthetic speech: `voice` sounds a syllable, `clips` draws words, `spelling` makes a model's inputs."""
