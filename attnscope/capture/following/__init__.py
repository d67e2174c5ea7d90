"""Record attentions as a model runs: from a kernel's arguments to an `AttentionCall` with its tokens.

takeover      the kernel that transformers looks up by name is replaced by ours, which calls it
describe      provenance, and the tokens that stand for queries and keys
recorder      one forward pass -> its calls, by layer and block
projected     the matrix that takes each head's output on, read back
"""
