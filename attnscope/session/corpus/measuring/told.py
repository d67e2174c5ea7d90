"""What a worker is told: which model, which heads, which measures, and how texts are read."""

from dataclasses import dataclass

from attnscope.session.request import ModelRequest, Wanted

LONGEST = 1024  # tokens of a text: the weights of a layer are quadratic in them
BATCH = 32


@dataclass(frozen=True)
class Linked:
    """The question which head links words of one part of speech to those of another."""

    source: str
    target: str


@dataclass(frozen=True)
class Told:
    """All of it; `rows` says whether what each text gives is kept."""

    request: ModelRequest
    wanted: Wanted
    measures: tuple[str, ...]
    longest: int = LONGEST
    batch: int = BATCH
    truncate: bool = False
    rows: bool = False
    linked: Linked | None = None
