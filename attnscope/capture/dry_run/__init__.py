"""Runs of a model without weights, on the meta device: what its attention would be handed, at no cost."""
