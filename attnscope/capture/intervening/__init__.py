"""Runs of a model in which the outputs of chosen heads are not what the model made of them.

`experiments` makes them of the attentions that are reached; `value_zeroing` does it for single keys.
`gradients` says beforehand what the direct path alone would tell (`direct_path`): sums, matrices and norms
held fixed, nothing else.
"""
