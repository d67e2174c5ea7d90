"""The tracer: attention of models that do not ask transformers' interface, read off torch's operations."""
