"""Reading attention over a long text: nothing of queries by keys is ever held, in no layer.

chunked   the model's kernel, a few queries at a time, with masks that are transformers' own rule
run       the run itself, to the last layer that is needed, and what passed by as a `LongCall`
"""
