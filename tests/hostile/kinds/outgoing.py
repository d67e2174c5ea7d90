"""Names and texts that would steer, in all that is written: tables, pages, pictures, programs."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line, with_text
from ..invocation import Invocation
from ..material import Material, copy

FORMULAS = ("=1+2", "+1", "-1+1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0", '="a"&"b"', "＝1")
FOLDERS = (
    "m\x1b[31m", "\x1b]0;t\x07", "a\nb", "a\rb", "=1+2", "@a", "-m", "\u202e", "\udc80", "'", '"""',
    "'''", "\\",
    "{x}", "%s", "$(touch x)", "`touch x`", "<script>", "\u2028", "\x9b2J", "#", "a b", "é",
)  # fmt: skip
SUFFIXES = (".py", ".py", ".csv", ".csv", ".html", ".json", ".npz", ".svg")
ROUGH = ("bert", "gpt2", "bert-masked", "llama")


def make(rng: Random, here: Path, material: Material) -> Invocation:
    name = rng.choice(FOLDERS)
    copy(material.folder(rng.choice(ROUGH)), here / name)
    argv = line(rng, here, material, name if draw.chance(rng, 0.5) else f"./{name}")
    for stem in rng.sample(("made", "a b", "=1", "\u202e"), rng.choice([0, 1, 1, 2])):
        argv += ["-o", stem + rng.choice(SUFFIXES)]
    text = (draw.text(rng)[:200], _of_formulas(rng), f"the {draw.odd(rng)} door {_of_formulas(rng)}")
    return Invocation(tuple(with_text(argv, rng.choice(text))))


def _of_formulas(rng: Random) -> str:
    return " ".join(rng.choice(FORMULAS) for _ in range(rng.randint(1, 4)))
