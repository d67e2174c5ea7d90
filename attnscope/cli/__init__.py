"""The commands: each resolves its input, computes a result, and shows it. The only place that prints."""
