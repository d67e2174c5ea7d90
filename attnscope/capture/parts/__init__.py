"""Cut a run into parts of which its scores are sums: one rule over torch's functions, no list of models."""
