"""The bundled models and the program that trained them. This file imports nothing heavy."""

from pathlib import Path

FOLDERS = {
    "demo": "encoder",
    "demo-causal": "causal",
    "demo-translate": "translate",
    "demo-reader": "reader",
    "demo-caption": "caption",
    "demo-speech": "speech",
}


def folder(name: str = "demo") -> Path:
    """Where a bundled model lies: an ordinary Hugging Face folder that `from_pretrained` accepts."""
    return Path(__file__).parent / FOLDERS[name]


def example(name: str) -> Path | None:
    """The picture or the sound that comes with a bundled model; None where it reads text."""
    return next(folder(name).glob("example.*"), None)
