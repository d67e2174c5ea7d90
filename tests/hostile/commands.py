"""Any line of any command, of what the program itself declares: its examples, its options, what they take.

An example of a verb is what it begins with: another model, other options and other files come to it.
An option is known by its metavar, whatever its name, so that a new one is drawn as well.
"""

import bz2
import gzip
import lzma
import shlex
from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from . import draw
from .material import BUNDLED, PICTURES, SOUNDS, TEXTS, Material

SUFFIXES = (".png", ".svg", ".pdf", ".npz", ".csv", ".json", ".html", ".py", ".srt")
TREE = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdoor\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
LINES = b"the door opened\nthe dog saw the door\nI was watching the [MASK] when it opened.\n"
CHAT = b'[{"role": "user", "content": "What is the key?"}, {"role": "assistant", "content": "red"}]'
FACT = (
    b'{"needle": "The key of Al is red.", "question": "Question: what is the key of Al?", "answer": "red"}\n'
)
Source = Callable[[Random, Material], bytes]


def _just(content: bytes) -> Source:
    return lambda *_: content


def _stored(suffix: str) -> Source:
    return lambda rng, made: rng.choice(sorted(made.stored().glob(f"*{suffix}"))).read_bytes()


SOURCES: dict[str, Source] = {  # files that stand in the current folder where a line names them
    "texts.txt": _just(LINES),
    "texts.txt.gz": _just(gzip.compress(LINES, mtime=0)),
    "texts.txt.bz2": _just(bz2.compress(LINES)),
    "texts.txt.xz": _just(lzma.compress(LINES)),
    "texts.txt.zst": _just(
        b"\x28\xb5\x2f\xfd\x20" + bytes([len(LINES)]) + (len(LINES) << 3 | 1).to_bytes(3, "little") + LINES
    ),
    "texts.jsonl": _just(b'{"text": "Mary saw the door", "spans": {"a": "Mary", "b": [9, 13]}}\n' * 3),
    "dev.conllu": _just((TREE * 3).encode()),
    "dev.conllu.gz": _just(gzip.compress((TREE * 3).encode(), mtime=0)),
    "chat.json": _just(CHAT),
    "facts.jsonl": _just(FACT * 2),
    "table.csv": _just(b"a,b\nMary,John\nthe dog,\xc3\xa9\n"),
    "vocab.txt": _just(b"[PAD]\nthe\ndoor\n"),
    "gold.txt": _just(b"1-1 2-2\n1-2\n"),
    "arrays.json": _just(b'{"q": [[1, 0]], "k": [[1, 0]], "v": [[1, 2]]}'),
    "map.json": _just(b'{"": "cpu"}'),
    "run.npz": _stored(".npz"),
    "head.npz": _stored(".npz"),
    "result.json": _stored(".json"),
    "square.png": lambda _, made: (made.media() / "square.png").read_bytes(),
    "speech.wav": lambda _, made: (made.folder("demo-speech") / "example.wav").read_bytes(),
}
FILES = (*SOURCES, "-", "missing")
NAMES: dict[str, tuple[str, ...]] = {  # options whose metavar says no more than that it is a name
    "--model": BUNDLED,
    "--model-b": BUNDLED,
    "--tokenizer": BUNDLED,
    "--tower": ("text_model", "vision_model", "encoder"),
    "--measure": ("entropy", "distance", "previous"),
    "--relation": ("nsubj", "det"),
    "--field": ("text", "a"),
    "--example": ("dictionary", "fruit", "tensors", "theatre", "why-scale"),
}
TAKES: dict[str, tuple[str, ...]] = {  # a metavar, or one of several that are told apart by |
    "N": ("0", "1", "2", "3", "-1", "5", "11"),
    "N,N,...": ("1,2,3", "101,2023,102", "0,1", "64"),
    "N[,N...]": ("64", "16,100000"),
    "P": ("2", "5", "30"),
    "SHARE": ("0", ".05", "1"),
    "TOKEN": ("0", "1", "it", "door", "[MASK]", "[SEP]", "the@1", "r1c1", "0.20s", "mean", "field:a"),
    "TOKENS": ("0-3", "the door", "1,2"),
    "WORD": ("door", "box", "window"),
    "WORDS": ("door", "box key", "il est"),
    "TEXT": (*draw.PLAIN, "{a} gave {b} the book", "none"),
    "NAME": ("entropy", "demo", "text"),
    "NAME[,NAME...]": ("entropy", "entropy,distance"),
    "NAME,NAME,...": ("entropy", "entropy,distance"),
    "NAME=N,...": ("a=1",),
    "TAG": ("NOUN", "DET"),
    "KEY": ("apple", "a"),
    "KEY=VALUE,...": ("a=1,b=2", "apple=1"),
    "A,B,C": ("a,b", "x,y,z"),
    "ROWS": ("1,0; 0,1", "1,2; 3,4; 5,6", "2"),
    "MISTAKE": ("no-scale", "softmax-queries"),
    "FILE": FILES,
    "TABLE": FILES,
    "RUN": FILES,
    "FOLDER": ("run", "missing"),
    "JSON": ('{"": "cpu"}',),
    "REV": ("main",),
    "cuda:N": ("cuda:0",),
    "SIZE": ("1MB", "300"),
    "DEVICE=SIZE,...": ("cpu=1GB", "cpu=1kB"),
    "HOST:PORT": ("127.0.0.1:9",),
    "QUERIES:KEYS": ("0-2:0-3", "1:1"),
    "WxH": ("6x4", "0.1x0.1"),
    "L3H11": ("L3H11", "L0H1", "L1", "L1.k"),
    "QUERY->KEY": ("[MASK]->opened", "1->0"),
}
COSTLY = {"flex_attention", "mps"}


@cache
def parameters() -> dict[str, tuple[Any, ...]]:
    """Of every command its options as the program itself declares them."""
    from typer.main import get_command

    from attnscope.cli.app import app

    every = get_command(app).commands.items()
    return {name: tuple(p for p in each.params if p.param_type_name == "option") for name, each in every}


def name_of(option: Any) -> str:
    return max(option.opts, key=len)


def is_path(option: Any) -> bool:
    """Whether its value names a file or a folder."""
    return bool({"FILE", "FOLDER", "TABLE"} & set((option.metavar or "").split("|")))


def sound(option: Any) -> tuple[str, ...]:
    """Values that it takes, most of them: what its type lists, what its metavar says or stands for."""
    kind = option.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(each.value for each in kind)
    if name_of(option) == "--out":
        return tuple(f"made{suffix}" for suffix in SUFFIXES)
    if name_of(option) in NAMES:
        return NAMES[name_of(option)]
    every = ((each,) if each == each.lower() else TAKES[each] for each in option.metavar.split("|"))
    return tuple(value for values in every for value in values if value not in COSTLY)


def spelled(rng: Random, option: Any, odd: float) -> list[str]:
    """The option with a value: sound, or with a chance of `odd` any, and now and then spelled oddly."""
    name = rng.choice(option.opts)
    if option.is_flag:
        return [f"{name}=1" if draw.chance(rng, odd / 20) else name]
    value = rng.choice(sound(option))
    if draw.chance(rng, odd):
        value = draw.path(rng) if is_path(option) else draw.value(rng)
    if draw.chance(rng, 0.9) or not name.startswith("--"):
        return [name, value]
    return [f"{name}={value}"]


def others(rng: Random, command: str, count: int, odd: float = 0.0) -> list[str]:
    """So many options of a command; where none may be odd, none that allows code or tells its help."""
    spared = {"--help-all", "--trust-remote-code", "--allow-pickle", "--verbose"}
    every = [each for each in parameters()[command] if odd or name_of(each) not in spared]
    chosen = rng.sample(range(len(every)), min(count, len(every)))
    return [word for i in chosen for word in spelled(rng, every[i], odd)]


def beginning(rng: Random, command: str) -> list[str]:
    """One of the examples of a command."""
    from attnscope.register import registered

    lines = [shlex.split(each)[1:] for each in registered()[command].examples]
    argv = rng.choice([each for each in lines if each[0] == command])
    return [*argv, *(("--needles", "1") if "retrieval" in argv else ())]


def line(
    rng: Random,
    here: Path,
    material: Material,
    model: str = "",
    among: tuple[str, ...] = (),
    odd: float = 0.0,
) -> list[str]:
    """A line of one of these commands, or of any, with the files that it names; of this model, or of any."""
    command = rng.choice(among or tuple(parameters()))
    argv = beginning(rng, command)
    named = model or (_model(rng, material, odd) if draw.chance(rng, 0.3) else "")
    if named and "-m" in argv:
        argv[argv.index("-m") + 1] = named
    elif named and command == "model":
        argv[1] = named
    argv += others(rng, command, rng.choice([0, 0, 1, 1, 2, 3, 5, 9] if odd else [0, 0, 1, 2]), odd)
    argv = with_text(argv, draw.text(rng)) if draw.chance(rng, odd) else argv
    furnish(rng, here, material, argv, odd)
    return argv


def with_text(argv: list[str], text: str) -> list[str]:
    """The line with another text, where it begins with one."""
    return [argv[0], *argv[2:], "--", text] if len(argv) > 1 and " " in argv[1] else argv


def _model(rng: Random, material: Material, odd: float) -> str:
    if draw.chance(rng, odd / 4):
        return rng.choice(draw.NAMES)
    name = rng.choice((*BUNDLED, *BUNDLED, *TEXTS, *PICTURES, *SOUNDS) if odd else BUNDLED)
    return name if name in BUNDLED else str(material.folder(name))


def furnish(rng: Random, here: Path, material: Material, argv: list[str], odd: float = 0.0) -> None:
    """The files that the line names, damaged with that chance."""
    for name, content in SOURCES.items():
        if any(word == name or word.endswith(f"={name}") for word in argv):
            whole = content(rng, material)
            (here / name).write_bytes(draw.changed_bytes(rng, whole) if draw.chance(rng, odd) else whole)


def written(rng: Random) -> list[str]:
    """`-o` with a name that most commands have a form for."""
    return ["-o", f"made{rng.choice(SUFFIXES[:6])}"]
