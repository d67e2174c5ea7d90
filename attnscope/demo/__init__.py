"""The bundled models and the program that trained them. This file imports nothing heavy."""

from pathlib import Path

FOLDERS = {"demo": "encoder", "demo-causal": "causal", "demo-translate": "translate"}


def folder(name: str = "demo") -> Path:
    """Where a bundled model lies: an ordinary Hugging Face folder that `from_pretrained` accepts."""
    return Path(__file__).parent / FOLDERS[name]
