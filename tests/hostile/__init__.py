"""Hostile input, made by the thousand: what the program must do with anything that it is given.

    python -m tests.hostile --runs 1000 --seed 1 [--kind NAME]

Hypothesis draws what `kinds` make (`campaign`), lines of every command among it (`commands`). A server has
the heavy libraries imported and forks itself for each (`process`), and `oracle` says what is wrong with what
came of it.
"""
