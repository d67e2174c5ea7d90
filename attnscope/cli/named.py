"""A text that is called like a file: what was meant is what is in it."""

import os
from pathlib import Path

from attnscope.errors import InputError
from attnscope.printable import printable
from attnscope.render.kit.words.shell import word

_SUFFIXES = {
    "attnscope show {} opens it": (".npz", ".json"),
    "--image {} reads it": (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp"),
    "--audio {} reads it": (".wav", ".flac", ".ogg", ".mp3"),
    "attnscope dependencies {} reads its sentences": (".conllu",),
}
_AS_TEXT = "- < {0} reads it as one text, --texts {0} each line as one"


def check_is_text(text: str) -> None:
    """Raises `InputError` for the name of a file that is there, which says how the file is read.

    What has no suffix is a text, whatever it is called: `door`.
    """
    if Path(text).suffix and os.path.isfile(text):
        raise InputError(f"'{printable(text)}' is a file, and no text: {_how(text).format(word(text))}")


def seems_a_file(text: str) -> str:
    """What to say of a text that is called like a file that is not there; empty of any other."""
    known = _how(text) is not _AS_TEXT or Path(text).suffix.lower() == ".txt"
    return f"there is no file '{printable(text)}': read as a text" if known and " " not in text else ""


def _how(text: str) -> str:
    suffix = Path(text).suffix.lower()
    return next((how for how, suffixes in _SUFFIXES.items() if suffix in suffixes), _AS_TEXT)
