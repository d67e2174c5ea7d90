"""Show what heads look at: one in full, several at a glance.

All is recomputed and certified. With one --layer and one --head that head in full; otherwise an
overview of the chosen heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import PROGRAM, Files, Question, named
from attnscope.session.selection import check_seed, rows_listed
from attnscope.session.wanted import HEADS, KEY, LAYERS, MEANS, ROWS, SCALE, Numbers, Wanted
from attnscope.session.which import Heads, Looked, Name, OneHead
from attnscope.vocabulary import Pool, Purpose, Scaling, Stage

if TYPE_CHECKING:
    from attnscope.results import (  # noqa: F401
        Dimensions,
        HeadTerms,
        HeadView,
        HeadWeights,
        LongHead,
        Overview,
        PictureAttention,
        PictureHeads,
        SoundAttention,
        SoundHeads,
        Thumbnails,
    )
    from attnscope.session.request import Inputs
    from attnscope.tokens import Tokens

OTHERS, MOST_OTHERS = 10, 1000  # answers beside the one that is meant
_LONG, _BY = "Long texts", "--by, --words and --special"
_OPENED = "attnscope.session.questions.heads:OpenedHeads"
_SHOWN = "attnscope.verbs.heads.answer"
DECODER = "decoder"  # the kind whose keys are words, whatever its encoder read

QUERY = option(
    "--query", "--from", metavar="TOKEN",
    help="Show what one query attends to: a token's text or its position (the@5; the#2 the second one); "
    'several words ("the door", 4-5, pos:all) are one query, their mean; over a picture or a sound also '
    "a patch (r3c5: row 3, column 5), a time (0.20s) or mean, the mean over all queries.",
    brief="the token that looks: its text, the@7, position 5",
)  # fmt: skip
SHOW = option("--show", help="What to tabulate; scores are q.k, scaled is what enters the softmax.")
TERMS = option(
    "--terms",
    help="Take the scores of one head apart: product, scale, cap, positions, mask; with --query for "
    "every key of one query, and with --key for one pair.",
)  # fmt: skip
DIMS = option(
    "--dims",
    help="The score of one query and one key by dimension: the products of which q.k is the sum, largest "
    "first; by default of the strongest pair, else of --query and --key.",
)  # fmt: skip
MEASURE = option(
    "--measure", metavar="NAME[,NAME...]|all", brief_metavar="NAME",
    help="What the grid of several heads shows, as `attnscope measures` lists it. Default: entropy.",
    brief="what the grid shows (attnscope measures), or all",
)  # fmt: skip
OF_ANSWER = option(
    "--answer", metavar="WORD",
    help="With --measure importance, attention-gradient or logit: the answer that is meant, a word, a "
    "class, follows. Default: the likeliest one.",
)  # fmt: skip
GRID = option(
    "--grid",
    help="The weights of every head in small, layers by heads on one page and on one scale; a cell of a "
    "long text is the largest of several pairs.",
    brief="the weights of every head in small, on one page",
)  # fmt: skip
TILED = option(
    "--tiled/--dense", panel=_LONG,
    help="Compute in tiles, never holding all queries by all keys, or hold them all. Default: by what it "
    "costs.",
)  # fmt: skip
ZOOM = option(
    "--zoom", metavar="QUERIES:KEYS", panel=_LONG,
    help="A window of one head pair by pair: 1000-1063:900-1100, -64--1 (both sides), 7: (all keys).",
)  # fmt: skip
POOL = option(
    "--pool", panel=_LONG,
    help="What a block of a long head shows: the mean of its pairs or the largest. Default: mean.",
)  # fmt: skip


@dataclass(frozen=True)
class AnyHead(OneHead):
    """One head that is named, or where a question takes it the mean over several."""

    WANTED = Wanted


@dataclass(frozen=True)
class SeveralHeads(Heads):
    """Several heads, by default all, by their place among the parameters too."""

    layers: Annotated[Numbers, LAYERS] = None
    heads: Annotated[Numbers, HEADS] = None


@dataclass(frozen=True)
class Weights(Looked, AnyHead, Question["HeadWeights | HeadView"]):
    """One head, recomputed and certified: `weights`, `scores`, `scaled`, `q`, `k`, `v`, `output`.

    With "mean" for a head the mean weights over all heads of the layer, or of all layers (None).
    With `words`, or without `special` tokens, a view of its weights. A head that cannot be recomputed
    holds the weights that the model returns, uncertified.
    """

    METHODS = ("Reading.head",)
    TAKES = MEANS

    def found(self, reading: Any, chosen: Any) -> Any:
        weights = named(_OPENED)(reading, chosen).weights()
        return named("attnscope.session.opening:look_at")(weights, self.looking) or weights


@dataclass(frozen=True)
class Terms(AnyHead, Question["HeadTerms"]):
    """The scores of one head taken apart."""

    METHODS = ("Reading.terms",)
    SAID = ("--terms",)

    def found(self, reading: Any, chosen: Any) -> Any:
        return named(_OPENED)(reading, chosen).terms()


@dataclass(frozen=True)
class Pair(AnyHead, Question["Dimensions"]):
    """The product of one query and one key by dimension, by default of the strongest pair of the head."""

    METHODS = ("Reading.dimensions",)
    SAID = ("--dims",)

    query: Annotated[Name | None, QUERY] = None
    key: Annotated[Name | None, KEY] = None

    def found(self, reading: Any, chosen: Any) -> Any:
        return named(_OPENED)(reading, chosen).dimensions(self.query, self.key)


@dataclass(frozen=True)
class Long(AnyHead, Question["LongHead"]):
    """One head computed in tiles, for a text of which `head` would hold too many pairs.

    It comes in blocks, drawn by the `pool` of their pairs (`mean` or `max`), or as a `zoom`
    ("1000-1063:900-1100", queries and keys) pair by pair; with a `query` that one's `row` in full.
    """

    METHODS = ("Reading.long_head",)
    ANSWER = "attnscope.verbs.heads.answer:long_head"

    SAID = ("--tiled",)

    _: KW_ONLY
    zoom: Annotated[str | None, ZOOM] = None
    query: Annotated[Name | None, QUERY] = None
    pool: Annotated[str, POOL] = Pool.MEAN.value

    def __post_init__(self) -> None:
        if self.pool not in tuple(Pool):
            raise InputError(f"a block shows the {' or the '.join(Pool)} of its pairs, not '{self.pool}'")
        super().__post_init__()


@dataclass(frozen=True)
class Grid(Looked, SeveralHeads, Question["Thumbnails"]):
    """The weights of several heads, by default all, each in the same few cells.

    With `words`, or without `special` tokens, rows are as `head` has them.
    """

    METHODS = ("Reading.grid",)
    SAID = ("--grid",)

    def found(self, reading: Any, chosen: Any) -> Any:
        return named(_OPENED)(reading, chosen).thumbnails(self.looking)


@dataclass(frozen=True)
class Over(SeveralHeads, Question["PictureAttention | PictureHeads | SoundAttention | SoundHeads"]):
    """What `query` gives to every patch of the picture or frame of the sound that was read."""

    METHODS = ("Reading.over",)

    query: Annotated[Name | None, QUERY] = None

    def reads(self, inputs: "Inputs") -> "tuple[Over, Inputs]":
        if not inputs.sensed:
            raise InputError("a text was read: only a picture or a sound has something to be laid over")
        return self, inputs

    def found(self, reading: Any, chosen: Any) -> Any:
        return named("attnscope.session.questions.heads:lay_over")(reading, chosen, self.query)


@dataclass(frozen=True, kw_only=True)
class Glance:
    """What is shown of several heads: what one `query` gives, and measures."""

    query: Annotated[Name | None, QUERY] = None
    key: Annotated[Name | None, KEY] = None
    measure: Annotated[str | Sequence[str] | None, MEASURE] = None
    answer: Annotated[str | None, OF_ANSWER] = None
    tiled: Annotated[bool | None, TILED] = None
    others: int = OTHERS
    seed: int = 0

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that are asked for by name."""
        asked = (self.measure,) if isinstance(self.measure, str) else tuple(self.measure or ())
        return named("attnscope.measures:parse_measures")(",".join(asked)) if asked else ()

    @property
    def measures_answer(self) -> bool:
        """Whether one of the measures is about the model's answer."""
        of_answers = "attnscope.session.questions.answers:of_answers"
        return self.measure is not None and bool(named(of_answers)(self.measures))

    @property
    def whole(self) -> bool:
        """Whether the model runs to its end: it does for an answer."""
        return self.answer is not None or self.measures_answer

    def purpose(self, inputs: "Inputs") -> Purpose:
        """What a model is loaded for."""
        return Purpose.ANSWER_OR_CLASS if self.whole else Purpose.ATTENTION


@dataclass(frozen=True)
class AtAGlance(Glance, Looked, SeveralHeads, Question["Overview"]):
    """Several heads, by default all, each by one or more of `measure`: names, or `all`.

    With a `query`, by text or position, what it gives to its strongest key in every head, or to `key`.
    Strongest links are those of ordinary tokens, unless `special` is `show`. A long text is computed in
    tiles where `tiled`, by default where all queries by all keys cost much. Measures of the model's
    answer (`importance`, `attention-gradient`, `logit`) are of the likeliest one or of `answer`, beside
    `others` that are drawn with `seed`.
    """

    METHODS = ("Reading.overview",)
    ANSWER = f"{_SHOWN}:at_a_glance"

    def __post_init__(self) -> None:
        if self.whole and (self.query is not None or self.key is not None):
            raise InputError("an answer is measured over all queries and keys: leave query and key out")
        if self.whole and not 0 <= self.others <= MOST_OTHERS:
            raise InputError(
                f"others is {self.others}: other answers to hold it against are 0 to {MOST_OTHERS}"
            )
        if self.whole:
            check_seed(self.seed, "seed")
        if self.query is not None and self.tiled:
            raise InputError("a query of several heads takes all queries by all keys: leave tiled out")
        if self.query is None and self.key is not None:
            raise InputError("a key goes with a query: name a query")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is shown of one head in full, or of all of them in small."""

    BEYOND: ClassVar[str] = "long texts"

    show: Annotated[Stage, SHOW] = Stage.WEIGHTS
    terms: Annotated[bool, TERMS] = False
    dims: Annotated[bool, DIMS] = False
    grid: Annotated[bool, GRID] = False
    scale: Annotated[Scaling, SCALE] = Scaling.SQRT
    rows: Annotated[str | int | None, ROWS] = None
    zoom: Annotated[str | None, ZOOM] = None
    pool: Annotated[Pool | None, POOL] = None
    files: Files = field(default=Files())

    @property
    def listed(self) -> Mapping[str, Any]:
        """How many rows are listed, where that is said."""
        return rows_listed(self.rows)


@dataclass(frozen=True, kw_only=True)
class ShowHeads(Glance, Shown, Looked, Heads, Question[Any]):
    """Heads as the command shows them: by how many there are, and by what was read."""

    KIND, TAKES, WRITES = "HeadWeights", MEANS, True
    ANSWER, NAMES = f"{_SHOWN}:show", "attnscope.session.opening:check_link"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shown()
        if self.grid:
            others = {"--query": self.query, "--rows": self.rows, "--measure": self.measure}
            self._leave_out("--grid shows whole heads in small", self._stage | self._apart | others)
        else:
            self._check_one()
        if self.wanted.mean:
            others = self._stage | self._apart | {"--grid": self.grid, "--measure": self.measure}
            self._leave_out("--head mean has weights alone", others)
        self._check_answer()

    @property
    def _stage(self) -> dict[str, Any]:
        return {f"--show {self.show}": self.show != Stage.WEIGHTS}

    @property
    def _apart(self) -> dict[str, Any]:
        return {"--terms": self.terms, "--dims": self.dims}

    @staticmethod
    def _leave_out(why: str, others: dict[str, Any]) -> None:
        if there := [name for name, given in others.items() if given is not None and given is not False]:
            raise InputError(f"{why}: leave {' and '.join(there)} out")

    def _check_shown(self) -> None:
        self.listed  # noqa: B018 - refused in its words
        if self.query is not None and self.show in (Stage.SCORES, Stage.SCALED):
            self._leave_out("--query shows the weights and scaled scores of one token", self._stage)
        if self.key is not None:
            self._leave_out("--key is about one weight", self._stage)
        if self.looking.changes and self.show != Stage.WEIGHTS:
            raise InputError(f"{_BY} are about weights: --show {self.show} belongs to single tokens")
        if self.key is not None and self.query is None:
            raise InputError("--key needs --query: what that query gives to the key")

    def _check_one(self) -> None:
        others = self._stage | {_BY: self.looking.changes}
        if self.terms:
            self._leave_out("--terms is about the scores of single tokens", others)
        if self.dims:
            self._leave_out("--dims is about one pair of tokens", others | {"--terms": self.terms})
        if self.scale != Scaling.SQRT and self.show != Stage.WEIGHTS:
            raise InputError(f"--scale is about weights: {self.show} stand around 0, leave --scale out")

    def _check_answer(self) -> None:
        about = self.measures_answer
        if self.answer is not None and self.measure is None:
            raise InputError("--answer is what --measure importance, logit and others are about: name one")
        if self.answer is not None and not about:
            raise InputError(f"--answer is not what --measure {self.measure} is about: leave it out")
        if about and self.query is not None:
            raise InputError("--query shows weights: an answer is measured over all queries, leave it out")

    def reads(self, inputs: "Inputs") -> "tuple[ShowHeads, Inputs]":
        if inputs.sensed and self.kind != DECODER and not self.grid:
            self.check_over_medium()
        return self, inputs

    def check_over_medium(self) -> None:
        """`InputError` for what heads that are laid over a picture or a sound do not have."""
        by = self.measure is None and self.looking.changes  # whole heads are measured by what is left
        others = self._stage | {_BY: by} | self._apart
        self._leave_out("--image and --audio show the weights of one query", others)

    def into(self, files: Files) -> "ShowHeads":
        programs = [file for file in files.places if file.suffix.lower() == PROGRAM]
        if self.wanted.mean and (files.pages or programs or files.of_each_head):
            without = "--head mean has no page, no script and no file of each head"
            raise InputError(f"{without}: name another file")
        return replace(self, files=files)

    def check_names(self, chosen: Any, queries: "Tokens | None", keys: "Tokens") -> None:
        if not (self.terms or self.dims or self.show != Stage.WEIGHTS):
            super().check_names(chosen, queries, keys)
        elif self.query is not None and queries is not None:
            single = "scores and vectors are those of single tokens"
            queries.span(self.query).one(f"{single}, choose one of these")

    def in_full(self, one: bool) -> bool:
        """Whether one head is shown in full, not several at a glance.

        `InputError` for options that are about the other, by whether `one` is chosen.
        """
        if one or self.terms or self.dims:
            if self.measure is not None:
                raise InputError("--measure is about several heads: leave --head out, or name several")
            return True
        for name, given in (("--show", self.show != Stage.WEIGHTS), ("--scale", self.scale != Scaling.SQRT)):
            if given:
                raise InputError(f"{name} needs one head: give one --layer and one --head")
        return False

    def against_tiles(self, one: bool) -> str:
        """What is asked for and cannot be had in tiles, of `one` head or of several."""
        if self.show != Stage.WEIGHTS:
            return f"--show {self.show} lists every pair"
        others = self._apart | {
            "--grid": self.grid,
            "--answer": self.whole,
            _BY: self.looking.changes,
            "--query of several heads": self.query is not None and not one,
            "--measure of one head": self.measure is not None and one,
            "--key": self.key is not None,
            "a page": bool(self.files.pages),
            "a file of each head": bool(self.files.of_each_head),
        }
        found = next((name for name, there in others.items() if there), "")
        return f"{found} needs all queries by all keys" if found else ""


FORMS = (ShowHeads,)
