"""Hostile input, made by the thousand: what the program must do with anything that it is given.

    python -m tests.hostile --runs 1000 --seed 1 [--kind NAME] [--only N]

Invocation N of a seed is always the same. A server has the heavy libraries imported and forks itself for each
(`process`), `kinds` make what is hostile, and `oracle` says what is wrong with what came of it.
"""
