"""What `attnscope heads` can be asked: its options, and which of them go together."""

from dataclasses import dataclass
from typing import Annotated

import typer

from attnscope.cli.options.inputs import Read, Writing
from attnscope.cli.options.shown import Key, Looking, QueryOverFile, Rows, Scale
from attnscope.cli.panels import SHOWN, Brief
from attnscope.errors import InputError
from attnscope.vocabulary import Pool, Scaling, Stage

Shown = Annotated[
    Stage, typer.Option("--show", help="What to tabulate; scores are q.k, scaled is what enters the softmax.")
]
Terms = Annotated[
    bool,
    typer.Option(
        "--terms",
        help="Take the scores of one head apart: product, scale, cap, positions, mask; with --query for "
        "every key of one query, and with --key for one pair.",
    ),
]
Dims = Annotated[
    bool,
    typer.Option(
        "--dims",
        help="The score of one query and one key by dimension: the products of which q.k is the sum, largest "
        "first; by default of the strongest pair, else of --query and --key.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measure",
        metavar="NAME[,NAME...]|all",
        help="What the grid of several heads shows, as `attnscope measures` lists it. Default: entropy.",
    ),
    Brief("what the grid shows (attnscope measures), or all", metavar="NAME"),
]
AnswerName = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="WORD",
        help="With --measure importance, attention-gradient or logit: the answer that is meant, a word, a "
        "class, follows. Default: the likeliest one.",
    ),
]
AsGrid = Annotated[
    bool,
    typer.Option(
        "--grid",
        help="The weights of every head in small, layers by heads on one page and on one scale; a cell of a "
        "long text is the largest of several pairs.",
    ),
    Brief("the weights of every head in small, on one page"),
]


Tiled = Annotated[
    bool | None,
    typer.Option(
        "--tiled/--dense",
        help="Compute in tiles, never holding all queries by all keys, or hold them all. Default: by what it "
        "costs.",
    ),
]
Zoom = Annotated[
    str | None,
    typer.Option(
        "--zoom",
        metavar="QUERIES:KEYS",
        help="A window of one head pair by pair: 1000-1063:900-1100, -64--1 (both sides), 7: (all keys).",
    ),
]
PoolShown = Annotated[
    Pool | None,
    typer.Option(
        "--pool",
        help="What a block of a long head shows: the mean of its pairs or the largest. Default: mean.",
    ),
]


DECODER = "decoder"  # the kind whose keys are words, whatever its encoder read


@dataclass(frozen=True)
class HeadOptions:
    """What is shown of the heads. Raises `InputError` for options that do not go together."""

    PANEL = SHOWN

    query: QueryOverFile = None
    show: Shown = Stage.WEIGHTS
    terms: Terms = False
    dims: Dims = False
    key: Key = None
    measure: Measures = None
    answer: AnswerName = None
    grid: AsGrid = False
    scale: Scale = Scaling.SQRT
    rows: Rows = None

    def check(self, looking: Looking, read: Read, writing: Writing, kind: str | None) -> None:
        """What can be told before the model is there; of a decoder's own words all of it holds."""
        from attnscope.render.focus import listed

        listed(self.rows)
        if self.query is not None and self.show in (Stage.SCORES, Stage.SCALED):
            raise InputError(
                f"--query shows the weights and scaled scores of one token: leave --show {self.show} out"
            )
        if self.key is not None and self.show is not Stage.WEIGHTS:
            raise InputError(f"--key is about one weight: leave --show {self.show} out")
        if looking.changes and self.show is not Stage.WEIGHTS:
            raise InputError(
                f"--by, --words and --special are about weights: --show {self.show} belongs to single tokens"
            )
        others = self._other_than_weights(looking)
        if self.key is not None and self.query is None:
            raise InputError("--key needs --query: what that query gives to the key")
        if self.grid:
            self._check_grid([f"--show {self.show}"] if self.show is not Stage.WEIGHTS else [])
            return
        if self.terms and others:
            raise InputError(
                f"--terms is about the scores of single tokens: leave {' and '.join(others)} out"
            )
        if self.dims and (others := [*others, *(["--terms"] if self.terms else [])]):
            raise InputError(f"--dims is about one pair of tokens: leave {' and '.join(others)} out")
        if self.scale is not Scaling.SQRT and self.show is not Stage.WEIGHTS:
            raise InputError(f"--scale is about weights: {self.show} stand around 0, leave --scale out")
        if read.media and kind != DECODER:
            self.check_over_medium(looking, writing)

    def _other_than_weights(self, looking: Looking) -> list[str]:
        others = [f"--show {self.show}"] if self.show is not Stage.WEIGHTS else []
        return others + (["--by, --words and --special"] if looking.changes else [])

    def check_over_medium(self, looking: Looking, writing: Writing) -> None:
        """Raises `InputError` for what heads that are laid over a picture or a sound do not have."""
        others = self._other_than_weights(looking)
        if self.measure is not None:  # of whole heads, by all tokens or by those that are left
            others = [option for option in others if option != "--by, --words and --special"]
        others += ["--terms"] if self.terms else []
        others += ["--dims"] if self.dims else []
        others += ["--generate"] if writing.generate else []
        if others:
            raise InputError(
                f"--image and --audio show the weights of one query: leave {' and '.join(others)} out"
            )

    def _check_grid(self, others: list[str]) -> None:
        asked = {
            "--terms": self.terms,
            "--dims": self.dims,
            "--query": self.query is not None,
            "--rows": self.rows is not None,
        }
        asked["--measure"] = self.measure is not None
        others = [*others, *(name for name, there in asked.items() if there)]
        if others:
            raise InputError(f"--grid shows whole heads in small: leave {' and '.join(others)} out")

    def in_full(self, one: bool) -> bool:
        """Whether one head is shown in full, not several at a glance.

        `InputError` for options that are about the other, by whether `one` is chosen.
        """
        if one or self.terms or self.dims:
            if self.measure is not None:
                raise InputError("--measure is about several heads: leave --head out, or name several")
            return True
        if self.show is not Stage.WEIGHTS:
            raise InputError("--show needs one head: give one --layer and one --head")
        if self.scale is not Scaling.SQRT:
            raise InputError("--scale needs one head: give one --layer and one --head")
        return False

    @property
    def of_an_answer(self) -> bool:
        """Whether a measure is asked for that is about the model's answer; `InputError` for what has none."""
        if self.measure is None:
            if self.answer is not None:
                raise InputError(
                    "--answer is what --measure importance, logit and others are about: name one"
                )
            return False
        from attnscope.session.questions.claims.answers import of_answers

        if not of_answers(self.measures or ()):
            if self.answer is not None:
                raise InputError(f"--answer is not what --measure {self.measure} is about: leave it out")
            return False
        if self.query is not None:
            raise InputError("--query shows weights: an answer is measured over all queries, leave it out")
        return True

    @property
    def measures(self) -> tuple[str, ...] | None:
        """The measures that are asked for by name, None where none are."""
        if self.measure is None:
            return None
        from attnscope.measures import parse_measures

        return parse_measures(self.measure)


@dataclass(frozen=True)
class Long:
    """What is done with a text that is too long to be shown whole."""

    PANEL = "Long texts"
    BEYOND = "long texts"

    tiled: Tiled = None
    zoom: Zoom = None
    pool: PoolShown = None

    @property
    def asked(self) -> bool:
        """Whether tiles are asked for by name, so that nothing that was held whole will do."""
        return bool(self.tiled) or self.zoom is not None or self.pool is not None
