"""Interventions: run a model with other outputs of chosen heads, values of keys, or parts of layers.

`experiments` changes attentions that can be reached; `value_zeroing` zeroes the values of single keys.
`gradients` predicts what the direct path alone would tell (`direct_path`): sums, matrices and norms
held fixed, nothing else.
"""
