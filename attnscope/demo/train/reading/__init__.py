"""What demo-reader is trained on: words, sentences, whole texts with questions, batches, the tokenizer."""
