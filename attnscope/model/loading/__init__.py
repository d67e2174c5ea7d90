"""Loading: from a checkpoint to a model that is ready to run, with the needed layers alone."""
