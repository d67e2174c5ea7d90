"""What a worker does with a chunk: texts to batches, batches to rows, rows to the bytes of its file."""
