"""Claims about heads, each beside its control: an experiment, another text, or what chance would give."""
