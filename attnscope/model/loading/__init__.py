"""A checkpoint in, a model that is ready to run out: only the layers that are needed, no weight made up."""
