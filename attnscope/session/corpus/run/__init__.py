"""The folder of a run: what it is a run of, and the chunks that are done, each whole or not there."""
