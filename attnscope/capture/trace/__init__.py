"""The tracer: attention of models that do not use transformers' interface, read off torch's operations."""
