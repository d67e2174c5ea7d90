"""Heads of models as worked examples: found in a model, or read from a file."""
