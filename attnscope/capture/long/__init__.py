"""Reading attention over a long text: nothing of queries by keys is ever held, in no layer.

masks     the masks that a model asks for, kept as transformers' own rule
chunked   its kernel, a few queries at a time
call      what passed by, as a `LongCall`
run       the run itself, to the last layer that is needed
"""
