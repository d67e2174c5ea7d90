"""Kernels taken over, and what becomes of their answers."""
