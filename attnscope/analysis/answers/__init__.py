"""Measures how a model's answer changes where heads or other parts are replaced."""
