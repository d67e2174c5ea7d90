"""Sheets of heads and other results, each loaded when a result of its kind is shown.

Each sheet of heads is in the module named like its kind in files (up to the first hyphen), or in that of
`_WITH`. A verb names the places of its own sheets.
"""

from dataclasses import dataclass, replace

from attnscope.errors import InputError
from attnscope.register import kind_of, there
from attnscope.render.kit.palette import scaling
from attnscope.render.kit.stage import MOST_LISTED, OF_KEYS, SHOWS, VECTORS, Show
from attnscope.render.sheet.said import messages
from attnscope.render.sheet.sheet import Sheet, Stored, as_the_file_says, guarded, harmless
from attnscope.results import (
    HeadAttention,
    HeadTerms,
    HeadView,
    HeadWeights,
    LongHead,
    PictureAttention,
    PictureHeads,
    Projection,
    Result,
    SoundAttention,
    SoundHeads,
    Thumbnails,
)
from attnscope.results.result import name_of
from attnscope.tokens import Tokens
from attnscope.vocabulary import Scaling


@dataclass(frozen=True)
class Focus:
    """The part of a result to show; by default all of it, a head by its weights.

    `queries` are positions: one of a head or its terms, up to two of a map. `key` is the position of a key.
    `decimals` is the most that a worked example shows. `verbose` adds certificates, columns and origins in
    full, `legend` the meaning of words and marks; `brief` leaves the answer and the proof. `in_nats` shows an
    entropy as such, not as a number of tokens. `scale` is the shading of weights; `rows` the number of listed
    queries of a long text, None for all. `stored` is the file that the result was read from.
    """

    stage: Show = "weights"
    queries: tuple[int, ...] = ()
    key: int | None = None
    decimals: int = 4
    verbose: bool = False
    legend: bool = False
    brief: bool = False
    in_nats: bool = False
    scale: Scaling = Scaling.SQRT
    rows: int | None = MOST_LISTED
    stored: Stored | None = None

    @property
    def query(self) -> int | None:
        """The first of the queries, or None."""
        return self.queries[0] if self.queries else None


WHOLE = Focus()
_OVER_MEDIA = PictureAttention | PictureHeads | SoundAttention | SoundHeads


def focus_on(
    result: Result,
    show: str | None = None,
    query: str | int | None = None,
    key: str | int | None = None,
    scale: str | None = None,
) -> Focus:
    """Focus for a stage, a query and a key (by text or position) and a scale.

    Raises `InputError` for parts that the result lacks, and for a name that fits no token or several.
    """
    stage = _stage(result, show)
    if query is None and key is None:
        return Focus(stage, scale=_scale(result, stage, scale))
    if not isinstance(result, HeadWeights | HeadView | HeadTerms | Projection):
        raise InputError("a query and a key need one head: its weights, its terms or its map")
    if query is None:
        raise InputError("a key goes with a query: name a query")
    queries, keys = _tokens(result)
    if stage in VECTORS:
        if key is not None:
            raise InputError(f"{stage} of one token is a vector: leave key out")
        return Focus(stage, ((keys if stage in OF_KEYS else queries).position(query),))
    if stage != "weights":
        raise InputError(f"a query shows its weights and scaled scores as it is: leave show {stage} out")
    asked, looked_at = queries.position(query), None if key is None else keys.position(key)
    return Focus(stage, (asked,), looked_at, scale=_scale(result, stage, scale))


def _scale(result: Result, stage: Show, wanted: str | None) -> Scaling:
    found = scaling(wanted or Scaling.SQRT)
    if found is not Scaling.SQRT and (
        stage != "weights"
        or not isinstance(result, HeadWeights | HeadView | HeadTerms | Thumbnails | LongHead | _OVER_MEDIA)
    ):
        raise InputError(f"a scale is that of the weights of one head: leave scale {found} out")
    return found


def _stage(result: Result, wanted: str | None) -> Show:
    stage = next((each for each in SHOWS if each == (wanted or "weights")), None)
    if stage is None:
        raise InputError(f"nothing of a head is called '{wanted}': {', '.join(SHOWS)}")
    if stage == "weights" or isinstance(result, HeadAttention):
        return stage
    if isinstance(result, HeadView):
        raise InputError(f"words and special tokens are about weights: {stage} belongs to single tokens")
    if isinstance(result, HeadWeights):
        raise InputError(f"there are only weights of this head: leave show {stage} out")
    raise InputError("show needs one head: its stages are " + ", ".join(SHOWS))


def _tokens(result: HeadWeights | HeadView | HeadTerms | Projection) -> tuple[Tokens, Tokens]:
    shown = result.head if isinstance(result, HeadTerms) else result
    return shown.query_tokens, shown.key_tokens


_WITH = {"dimensions": "terms", "picture": "media", "sound": "media", "view": "head"}


def sheet_of(result: Result, focus: Focus = WHOLE) -> Sheet:
    """The sheet of a result for a focus, with harmless texts."""
    kind, name = kind_of(type(result)), name_of(type(result)).split("-")[0]
    place = f"{__name__}.{_WITH.get(name, name)}:sheet" if kind is None else kind.sheet
    made: Sheet = there(place)(result, focus)
    made = as_the_file_says(made) if result.from_file else made
    return harmless(guarded(replace(made, messages=_messages(result)), result.verdict))


def proof_of(result: Result) -> str:
    """The full line of proof of a result."""
    return " · ".join(told for _, told in sheet_of(result, Focus(verbose=True)).proof)


def _messages(result: Result) -> str:
    sides = [getattr(result, name, None) for name in ("head", "overview", "tokens", "a", "b")]
    for each in (*(getattr(side, "head", None) for side in sides), *sides, result):
        for axis in ("key_tokens", "query_tokens", "tokens"):
            tokens = getattr(each, axis, None)
            if isinstance(tokens, Tokens) and tokens.sections:
                return messages(tokens)
    return ""


def no_picture(kind: type[Result]) -> str:
    """Reason why results of this class have no picture; empty where they have one."""
    of_verb = kind_of(kind)
    return "" if of_verb is None else of_verb.no_picture
