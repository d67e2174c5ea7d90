"""Read attention over a long text without ever holding a matrix of queries by keys.

chunked   the model's kernel, a few queries at a time, with masks that are transformers' own rule
run       the run itself, to the last layer that is needed, and each attention as a `LongCall`
"""
