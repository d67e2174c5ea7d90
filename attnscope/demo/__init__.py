"""The bundled demo model and the program that trained it. This file imports nothing heavy."""

from pathlib import Path


def folder() -> Path:
    """Where the bundled model lies: an ordinary Hugging Face folder that `from_pretrained` accepts."""
    return Path(__file__).parent / "encoder"
