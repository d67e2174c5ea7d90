"""Standard streams that are closed, full, broken or no text."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line, written
from ..invocation import Invocation, Stream
from ..material import Material

SHORT = (
    ["--help"], ["--version"], ["heads", "--help"], ["sdpa", "--example", "fruit"], ["sdpa", "--example",
    "nosuch"], ["measures"],
    ["measures", "--json"], ["nosuch"], [], ["heads"], ["sdpa", "-"], ["heads", "-", "-m", "demo"],
    ["predict", "-", "-m", "demo"],
    ["heads", "--bogus"], ["model", "demo"], ["model", "demo", "--json"], ["sdpa", "--example", "why-scale",
    "-o", "made.png"],
    ["verify", "-", "-m", "demo-translate"], ["--show-completion"],
)  # fmt: skip


def make(rng: Random, here: Path, material: Material) -> Invocation:
    if draw.chance(rng, 0.5):
        argv = list(rng.choice(SHORT))
    else:
        argv = line(rng, here, material)
        argv += written(rng) if draw.chance(rng, 0.3) else []
    out = rng.choice([Stream.KEPT, Stream.CLOSED, Stream.FULL, Stream.BROKEN])
    err = rng.choice([Stream.KEPT, Stream.KEPT, Stream.CLOSED, Stream.FULL, Stream.BROKEN])
    given = (b"", b"a text", b"\xff\xfe\x00", rng.randbytes(30) * 100, b'{"q": [[1]]}')
    typed = rng.choice([Stream.CLOSED, Stream.WRITABLE, *given])
    return Invocation(tuple(argv), stdin=typed, stdout=out, stderr=err, cold=draw.chance(rng, 0.1))
