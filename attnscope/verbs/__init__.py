"""The verbs: a folder each, which can be deleted. `VERB` in it says what there is (`attnscope.register`)."""
