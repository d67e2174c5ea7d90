"""Which head finds which grammatical relation."""
