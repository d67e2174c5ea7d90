"""The version of attnscope, which packages, provenance and `--version` take from here."""

__version__ = "0.1.0"
