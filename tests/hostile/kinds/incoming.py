"""Every option that reads, given what never ends, a pipe of a shell, standard input, or no file."""

from pathlib import Path
from random import Random

from .. import draw
from ..invocation import Invocation
from ..material import Material
from .sensible import MODELS

PIPE = "/dev/fd/63"  # as a shell names <(...), which it opens from there downwards
ENDLESS = ("/dev/zero", "/dev/urandom", "/dev/full", "/proc/self/fd/0")
NO_FILES = ("missing", "", ".", "/proc/self/mem", "/proc/self/maps", "/dev/null", "sparse", "loop", "a" * 300)
LIMITS = ("1MB", "300", "0", "-1", "nan", "1e400GB", "2 kb", "", "\u202e")
TREE = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdoor\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
SPARSE = 40 * 10**9  # bytes that a file says it has, and nobody wrote
READS = (  # the arguments before the file, and those behind it
    (["heads", "--texts"], ["--layer", "0", "--head", "1"]),
    (["predict", "--texts"], ["--json"]),
    (["find", "--from", "0", "--to", "1", "--texts"], []),
    (["ablate", "--texts"], ["--layer", "0"]),
    (["compare", "--word", "door", "--texts"], []),
    (["compare", "--word", "1", "--ids", "1,2", "--ids-b", "1,3", "--vocab"], []),
    (["heads", "--ids", "1,2", "--layer", "0", "--vocab"], []),
    (["verify", "--ids", "1,2", "--vocab"], []),
    (["heads", "--image"], []),
    (["verify", "--audio"], []),
    (["heads", "the door", "--device-map"], []),
    (["heads", "the door", "--adapter"], []),
    (["dependencies"], ["--limit", "3"]),
    (["corpus"], ["--workers", "0", "--layer", "0", "--run", "run"]),
    (["corpus", "--format", "file"], ["--workers", "0", "--layer", "0", "--run", "run"]),
    (["corpus", "--format", "jsonl"], ["--workers", "0", "--layer", "0", "--run", "run"]),
    (["corpus", "--format", "conllu"], ["--workers", "0", "--layer", "0", "--run", "run"]),
    (["corpus", "--format", "parquet"], ["--workers", "0", "--layer", "0", "--run", "run"]),
)
WITHOUT_A_MODEL = (
    (["show"], []),
    (["check"], []),
    (["check", "missing.npz", "--image"], []),
    (["sdpa"], []),
    (["sdpa", "--scores"], []),
)


def make(rng: Random, here: Path, material: Material) -> Invocation:
    known = rng.random() < 0.75
    before, behind = rng.choice(READS if known else WITHOUT_A_MODEL)
    content = _content(rng, material)
    with (here / "sparse").open("wb") as made:
        made.truncate(SPARSE)
    (here / "loop").symlink_to("loop")
    (here / "given").write_bytes(content)
    name, typed = _source(rng), b""
    if name == "-":
        typed = content
    argv = [*before, name, *behind, *(["-m", rng.choice(MODELS)] if known else [])]
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
    made = rng.choice(
        [
            b"the door opened\nthe dog saw the door\n",
            lines,
            (TREE * 3).encode(),
            b'{"text": "the door opened"}\n' * 3,
            b'{"text": "the door", "[PAD]": 0, "door": 2}',
            b'{"bert.encoder": "cpu", "": "cpu"}',
            b'{"q": [[1, 0]], "k": [[1, 0]], "v": [[1, 2]]}',
            b"x" * 40000,
            b"",
            rng.randbytes(2000),
        ]
    )
    if draw.chance(rng, 0.15):
        made = rng.choice(sorted(material.stored().iterdir())).read_bytes()
    return draw.changed_bytes(rng, made) if draw.chance(rng, 0.2) else made
