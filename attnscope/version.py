"""The version of attnscope, read by packaging, provenance and `--version`."""

__version__ = "0.1.0"
