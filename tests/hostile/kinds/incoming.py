"""Every option that reads, given what never ends, a pipe of a shell, standard input, or no file."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import SOURCES, beginning, furnish, is_path, name_of, parameters
from ..invocation import Invocation
from ..material import Material

PIPE = "/dev/fd/63"  # as a shell names <(...), which it opens from there downwards
ENDLESS = ("/dev/zero", "/dev/urandom", "/dev/full", "/proc/self/fd/0")
NO_FILES = ("missing", "", ".", "/proc/self/mem", "/proc/self/maps", "/dev/null", "sparse", "loop", "a" * 300)
LIMITS = ("1MB", "300", "0", "-1", "nan", "1e400GB", "2 kb", "", "\u202e")
SPARSE = 40 * 10**9  # bytes that a file says it has, and nobody wrote
READS = ("check", "corpus", "dependencies", "show")  # a file, in the place of a text


def make(rng: Random, here: Path, material: Material) -> Invocation:
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
