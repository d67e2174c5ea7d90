"""Lines of every command: any combination of options, odd values, texts, files and spellings."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line, parameters
from ..invocation import Invocation
from ..material import Material


def make(rng: Random, here: Path, material: Material) -> Invocation:
    if draw.chance(rng, 0.04):
        return Invocation(tuple(_of_the_program(rng)))
    argv = line(rng, here, material, odd=rng.choice([0.05, 0.2, 0.5]))
    if draw.chance(rng, 0.03):
        argv.insert(rng.randint(0, len(argv)), draw.value(rng))
    return Invocation(tuple(argv), stdin=_typed(rng))


def _of_the_program(rng: Random) -> list[str]:
    """What stands before any command, or in place of one."""
    command = rng.choice(list(parameters()))
    return rng.choice(
        [
            [], ["--help"], ["-h"], ["--version"], ["--version", command], ["--show-completion"],
            ["--nosuch"], [draw.value(rng)], [draw.text(rng), "--help"], ["--version=1"], ["--", command],
            [command, "--help", draw.value(rng)], [command + draw.odd(rng)], ["-" + draw.odd(rng)],
            ["--" + draw.text(rng)[:50]], [command.upper(), "x"], [command[:-1], "x"], ["@file"],
        ]
    )  # fmt: skip


def _typed(rng: Random) -> bytes:
    """Standard input: a text, or bytes that are none."""
    whole = draw.text(rng).encode("utf-8", "surrogateescape")
    return rng.choice([whole, whole + b"\n", whole + b"\0", b"", b"\xff\xfe" + whole, b"\xfe\x80\xff" * 60])
