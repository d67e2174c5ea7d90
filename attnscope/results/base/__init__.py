"""Base classes of results: provenance, certificates, presentation, special tokens, strongest links."""
