"""One thing held against another: a word in two texts or models, two runs, a stored run and a new one."""
