"""Files to texts: lines, whole files, JSON lines, treebanks, Parquet; and texts to numbered chunks."""
