"""`attnscope heads` on a long text: whether it is answered in tiles, and with what."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from attnscope.cli.asking import Answer
from attnscope.errors import InputError
from attnscope.vocabulary import Pool, Scaling, Stage

if TYPE_CHECKING:
    from attnscope.cli.groups import Delivery, Looking
    from attnscope.render.focus import Focus
    from attnscope.session.choosing import Chosen
    from attnscope.session.reading import Reading

_WHOLE = "all queries by all keys"
_Tiled = Annotated[
    bool | None,
    typer.Option(
        "--tiled/--dense",
        help="Compute in tiles, never holding all queries by all keys, or hold them all. Default: by what it "
        "costs.",
        show_default=False,
    ),
]
_Zoom = Annotated[
    str | None,
    typer.Option(
        "--zoom",
        metavar="QUERIES:KEYS",
        help="A window of one head pair by pair: 1000-1063:900-1100, -64--1 (both sides), 7: (all keys).",
    ),
]
_Pool = Annotated[
    Pool | None,
    typer.Option(
        "--pool",
        help="What a block of a long head shows: the mean of its pairs or the largest. Default: mean.",
    ),
]


@dataclass(frozen=True)
class Long:
    """What is done with a text that is too long to be shown whole."""

    PANEL = "Long texts"

    tiled: _Tiled = None
    zoom: _Zoom = None
    pool: _Pool = None

    @property
    def asked(self) -> bool:
        """Whether tiles are asked for by name, so that nothing that was held whole will do."""
        return bool(self.tiled) or self.zoom is not None or self.pool is not None


class LongOptions(Protocol):
    """What is asked of heads, as `attnscope.cli.commands.heads` has it."""

    @property
    def query(self) -> str | None: ...

    @property
    def show(self) -> Stage: ...

    @property
    def terms(self) -> bool: ...

    @property
    def dims(self) -> bool: ...

    @property
    def key(self) -> str | None: ...

    @property
    def measure(self) -> str | None: ...

    @property
    def answer(self) -> str | None: ...

    @property
    def grid(self) -> bool: ...

    @property
    def scale(self) -> Scaling: ...

    @property
    def rows(self) -> str | None: ...

    @property
    def of_an_answer(self) -> bool: ...

    @property
    def measures(self) -> tuple[str, ...] | None: ...


def answered_in_tiles(
    reading: "Reading",
    chosen: "Chosen",
    long: Long,
    asked: LongOptions,
    looking: "Looking",
    delivery: "Delivery",
) -> Answer | None:
    """The answer in tiles where that is worth it or asked for; None where all pairs are to be held.

    Raises `InputError` for what is asked for and cannot be had so, `DoesNotFitError` where nothing fits.
    """
    from attnscope.session.cache.remembered import Remembered  # without torch, as what is kept is shown

    if isinstance(reading, Remembered):
        return None  # what is kept of an earlier run was held whole
    from attnscope.session.questions.long import in_tiles, read_long, read_long_overview

    window = long.zoom is not None or long.pool is not None
    if window and not chosen.one:
        raise InputError("--zoom and --pool show one head: give one --layer and one --head")
    if window and long.tiled is False:
        raise InputError("--zoom and --pool are of tiles: leave --dense out")
    against = _against(chosen, asked, looking, delivery)
    if not in_tiles(reading, chosen, True if window else long.tiled, against):
        return None
    if chosen.one:
        pool = long.pool or Pool.MEAN
        found = read_long(reading, chosen, zoom=long.zoom, query=asked.query, pool=pool)
        return Answer(found, _focus(asked))
    return Answer(read_long_overview(reading, chosen, asked.measures or ("entropy",), looking))


def _focus(asked: LongOptions) -> "Focus":
    from attnscope.render.focus import Focus, listed

    return Focus(scale=asked.scale, rows=listed(asked.rows))


def _against(chosen: "Chosen", asked: LongOptions, looking: "Looking", delivery: "Delivery") -> str:
    """What is asked for that tiles do not have, in a phrase; empty where nothing is."""
    from attnscope.cli.naming import is_of_each_head

    if asked.show is not Stage.WEIGHTS:
        return f"--show {asked.show} lists every pair"
    others = {
        "--terms": asked.terms,
        "--dims": asked.dims,
        "--grid": asked.grid,
        "--answer": asked.answer is not None or asked.of_an_answer,
        "--words and --special": looking.changes,
        "--query of several heads": asked.query is not None and not chosen.one,
        "--measure of one head": asked.measure is not None and chosen.one,
        "--key": asked.key is not None,
        "a page": any(each.suffix.lower() == ".html" for each in delivery.targets),
        "a file of each head": any(map(is_of_each_head, delivery.targets)),
    }
    named = next((name for name, there in others.items() if there), "")
    return f"{named} needs {_WHOLE}" if named else ""
