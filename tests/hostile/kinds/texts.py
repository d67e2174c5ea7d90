"""Hostile texts: in every place where a text is read, with tokenizers of every sort."""

from pathlib import Path
from random import Random

from .. import draw
from ..invocation import Invocation
from ..material import BUNDLED, TEXTS, Material
from .sensible import FOCUSED, READING, extras, written

TOKENS = ("--query", "--key", "--compare-query", "--word-b")


def make(rng: Random, here: Path, material: Material) -> Invocation:
    command = rng.choice(READING)
    name = rng.choice(BUNDLED) if draw.chance(rng, 0.6) else rng.choice(TEXTS)
    model = name if name in BUNDLED else str(material.folder(name))
    text, stdin = draw.text(rng), b""
    if draw.chance(rng, 0.2):
        stdin, text = _typed(rng, text), "-"
    argv = [command, "-m", model]
    if draw.chance(rng, 0.3):
        argv += ["--pair", draw.text(rng)]
    if draw.chance(rng, 0.4 if name in ("demo-translate", "bart", "t5") else 0.03):
        argv += ["--target", draw.text(rng)]
    if draw.chance(rng, 0.4):
        argv.append("--truncate")
    if command == "compare":
        argv += ["--word", _token(rng, text)]
    if command in FOCUSED and draw.chance(rng, 0.8):
        argv += ["--layer", rng.choice(["0", "1", "-1"]), "--head", rng.choice(["0", "1", "-1"])]
        if command != "compare" and draw.chance(rng, 0.4):
            argv += ["--query", _token(rng, text)]
        if command in ("heads", "tsne") and draw.chance(rng, 0.3):
            argv += ["--key", _token(rng, text)]
    argv += extras(rng, command)
    if draw.chance(rng, 0.25):
        argv += written(rng, command)
    argv += ["--", text] if draw.chance(rng, 0.5) or (text.startswith("-") and text != "-") else [text]
    if command == "compare" and draw.chance(rng, 0.6):
        argv.append(draw.text(rng))
    return Invocation(tuple(argv), stdin=stdin)


def _typed(rng: Random, text: str) -> bytes:
    """Standard input: the text, or bytes that are none."""
    whole = text.encode("utf-8", "surrogateescape")
    return rng.choice(
        [
            whole,
            whole + b"\n",
            whole + b"\0",
            b"",
            b"\xff\xfe" + text.encode("utf-16", "replace"),
            rng.randbytes(200),
        ]
    )


def _token(rng: Random, text: str) -> str:
    words = text.split() or [""]
    return rng.choice(
        [
            rng.choice(words),
            str(rng.randint(-3, 12)),
            draw.odd(rng),
            draw.value(rng),
            rng.choice(words) + "@1",
        ]
    )
