"""Options of every command: any combination, wrong types, extreme numbers, unknown names, odd spellings."""

from pathlib import Path
from random import Random
from typing import Any

from .. import draw
from ..invocation import Invocation
from ..material import Material
from . import places
from .sensible import MODELS, READING, SENSIBLE, is_path, name_of, parameters

COMMANDS = (*READING, "sdpa", "model", "show", "measures")
COSTLY = {"flex_attention"}


def make(rng: Random, here: Path, material: Material) -> Invocation:
    if draw.chance(rng, 0.05):
        return Invocation(tuple(_of_the_program(rng)))
    command = rng.choice(COMMANDS)
    argv = _arguments(rng, command)
    chosen = rng.sample(
        parameters(command), min(len(parameters(command)), rng.choice([0, 1, 1, 2, 2, 3, 5, 9]))
    )
    for option in chosen:
        argv += _option(rng, option)
    if command in READING and not {"-m", "--model"} & set(argv):
        argv += ["-m", rng.choice(MODELS)] if draw.chance(rng, 0.95) else []
    if command == "compare" and "--word" not in argv:
        argv += ["--word", rng.choice(["1", "door", "the", draw.value(rng)])]
    if draw.chance(rng, 0.03):
        argv.insert(rng.randint(0, len(argv)), draw.value(rng))
    return Invocation(tuple(argv), stdin=draw.text(rng).encode("utf-8", "surrogateescape"))


def _of_the_program(rng: Random) -> list[str]:
    """What stands before any command, or in place of one."""
    return rng.choice(
        [
            [], ["--help"], ["-h"], ["--version"], ["--version", "heads"], ["--show-completion"],
            ["--nosuch"], [draw.value(rng)],
            [draw.text(rng), "--help"], ["--version=1"], ["--", "heads"], [rng.choice(COMMANDS),
            "--help", draw.value(rng)],
            ["heads" + draw.odd(rng)], ["-" + draw.odd(rng)], ["--" + draw.text(rng)[:50]], ["HEADS", "x"],
            ["head", "x"], ["@file"],
        ]
    )  # fmt: skip


def _arguments(rng: Random, command: str) -> list[str]:
    if command == "model":
        return [command, rng.choice([*MODELS, rng.choice(draw.NAMES)])]
    if command == "show":
        return [command, places.file(rng)]
    if command in ("sdpa", "measures"):
        return [command]
    made = [command, rng.choice(draw.PLAIN)]
    return [*made, rng.choice(draw.PLAIN)] if command == "compare" and draw.chance(rng, 0.6) else made


def _option(rng: Random, option: Any) -> list[str]:
    """The option with a value, sensible or not, and now and then spelled oddly."""
    name = rng.choice(option.opts)
    if option.is_flag:
        return [name if draw.chance(rng, 0.97) else f"{name}=1"]
    long = name_of(option)
    if is_path(option):
        value = places.file(rng)
    elif long in SENSIBLE and draw.chance(rng, 0.55):
        value = rng.choice(SENSIBLE[long])
    elif long in ("--model", "--model-b"):
        value = rng.choice(draw.NAMES)
    else:
        value = draw.value(rng)
    value = "0" if value in COSTLY else value
    return (
        [name, value]
        if name.startswith("--") and draw.chance(rng, 0.9)
        else [f"{name}={value}" if name != "-o" else name + value]
    )
