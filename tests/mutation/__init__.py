"""Mutation testing: every operator, constant and condition of a module changed once, and the tests asked.

    python -m tests.mutation --module attnscope/sdpa.py

A mutant that no test kills points at a line that nothing holds to what it should be: it is killed by a new
test, or explained in `explained.toml`. Well-kept programs do the same (mutmut, cosmic-ray), but mutmut leaves
out decorated functions, module constants and defaults, of which this package is full, and cosmic-ray starts a
fresh interpreter for each mutant: six seconds of importing, thousands of times. Here one process that has
torch and transformers in memory forks a child for each.
"""
