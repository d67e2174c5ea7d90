"""Which head finds which grammatical relation of a treebank."""
