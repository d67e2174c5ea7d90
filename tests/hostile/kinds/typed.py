"""What is typed: lines of every command, what they read, and names that would steer in what they write."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import SOURCES, beginning, furnish, is_path, line, name_of, parameters, with_text
from ..invocation import Invocation
from ..material import Material, copy

PIPE = "/dev/fd/63"  # as a shell names <(...), which it opens from there downwards
ENDLESS = ("/dev/zero", "/dev/urandom", "/dev/full", "/proc/self/fd/0")
NO_FILES = ("missing", "", ".", "/proc/self/mem", "/proc/self/maps", "/dev/null", "sparse", "loop", "a" * 300)
LIMITS = ("1MB", "300", "0", "-1", "nan", "1e400GB", "2 kb", "", "\u202e")
SPARSE = 40 * 10**9  # bytes that a file says it has, and nobody wrote
READS = ("check", "corpus", "dependencies", "show")  # a file, in the place of a text
FORMULAS = ("=1+2", "+1", "-1+1", "@SUM(A1)", "\t=1", "=cmd|' /C calc'!A0", '="a"&"b"', "＝1")
FOLDERS = (
    "m\x1b[31m", "\x1b]0;t\x07", "a\nb", "a\rb", "=1+2", "@a", "-m", "\u202e", "\udc80", "'", '"""', "'''",
    "\\", "{x}", "%s", "$(touch x)", "`touch x`", "<script>", "\u2028", "\x9b2J", "#", "a b", "é",
)  # fmt: skip
SUFFIXES = (".py", ".py", ".csv", ".csv", ".html", ".json", ".npz", ".svg")
ROUGH = ("bert", "gpt2", "bert-masked", "llama")


def lines(rng: Random, here: Path, material: Material) -> Invocation:
    """Any combination of options, odd values, texts, files and spellings."""
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


def incoming(rng: Random, here: Path, material: Material) -> Invocation:
    """Every option that reads, given what never ends, a pipe of a shell, standard input, or no file."""
    command = rng.choice([*parameters(), *READS])
    options = [name_of(each) for each in parameters()[command] if is_path(each)]
    argv = beginning(rng, command)
    content = _content(rng, material)
    with (here / "sparse").open("wb") as made:
        made.truncate(SPARSE)
    (here / "loop").symlink_to("loop")
    (here / "given").write_bytes(content)
    name, typed = _source(rng), b""
    if name == "-":
        typed = content
    if command in READS and draw.chance(rng, 0.8):
        argv[1] = name
    else:
        argv += [rng.choice(options), name] if options else [name]
    furnish(rng, here, material, argv)
    environment = {"ATTNSCOPE_INPUT_LIMIT": "1MB"}
    if draw.chance(rng, 0.2):
        environment = {"ATTNSCOPE_INPUT_LIMIT": rng.choice(LIMITS)}
    elif draw.chance(rng, 0.2):
        argv += ["--input-limit", rng.choice(LIMITS)]
    piped = content[:60000] if name == PIPE else None
    return Invocation(tuple(argv), stdin=typed, environment=environment, piped=piped)


def _source(rng: Random) -> str:
    sort = rng.randrange(4)
    if sort == 0:
        return rng.choice(ENDLESS)
    if sort == 1:
        return rng.choice(NO_FILES)
    return PIPE if sort == 2 else rng.choice(["-", "given"])


def _content(rng: Random, material: Material) -> bytes:
    """Something that one of these commands reads, sound or not."""
    lines = "".join(f"{draw.text(rng)}\n" for _ in range(3)).encode("utf-8", "surrogateescape")
    odd = (lines, b'{"text": "the door", "[PAD]": 0, "door": 2}', b"x" * 40000, b"", rng.randbytes(20) * 100)
    made = rng.choice(odd) if draw.chance(rng, 0.4) else rng.choice([*SOURCES.values()])(rng, material)
    return draw.changed_bytes(rng, made) if draw.chance(rng, 0.2) else made


def outgoing(rng: Random, here: Path, material: Material) -> Invocation:
    """Names and texts that would steer, in all that is written: tables, pages, pictures, programs."""
    name = rng.choice(FOLDERS)
    copy(material.folder(rng.choice(ROUGH)), here / name)
    argv = line(rng, here, material, name if draw.chance(rng, 0.5) else f"./{name}")
    for stem in rng.sample(("made", "a b", "=1", "\u202e"), rng.choice([0, 1, 1, 2])):
        argv += ["-o", stem + rng.choice(SUFFIXES)]
    text = (draw.text(rng)[:200], _of_formulas(rng), f"the {draw.odd(rng)} door {_of_formulas(rng)}")
    return Invocation(tuple(with_text(argv, rng.choice(text))))


def _of_formulas(rng: Random) -> str:
    return " ".join(rng.choice(FORMULAS) for _ in range(rng.randint(1, 4)))
