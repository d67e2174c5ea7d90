"""The command line: one command per verb, its options, and where its output goes."""
