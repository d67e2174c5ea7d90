"""Runs of a model in which the outputs of chosen heads are not what the model made of them."""
