"""One query's row as horizontal bars, strongest key first."""

from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, bar, line
from attnscope.render.kit.labels import left, right, settled
from attnscope.render.kit.numbers import counted, signed_texts, weight_text
from attnscope.render.kit.palette import BAR
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.words.weights import head_of, special_words, sums_words, view_words
from attnscope.render.terminal.strongest import descending
from attnscope.results import HeadAttention, HeadView, HeadWeights

MOST_KEYS = 25
_MOST_LABEL = 20
_FULL_BARS = (0.05, 0.1, 0.2, 0.5, 1.0)


def query_bars(
    result: HeadWeights | HeadView, query_position: int, width: int, key: int | None = None
) -> RenderableType:
    """The keys of one query ranked by weight, each with weight, scaled score and a bar, in `width` cells.

    The length of a bar is proportional to the weight; the heading says which weight a full bar stands for.
    Words have no score of their own, so the bars of a view go without, as do weights that were only returned.
    `key` stands out, is listed however weak, and its rank is told.
    """
    name = settled(result.query_tokens.names[query_position])
    title = (("query ", DIM), (f"{result.query_tokens.positions[query_position]} {name}", HEADING))
    if not result.answered[query_position]:
        return Group(line(*title, f" has {_why_not(result, query_position)}"))
    weights = result.weights[query_position]
    ranked = [key for key in descending(weights) if result.allowed[query_position, key]]
    further = [each for each in ranked[MOST_KEYS:] if each == key]
    listed = [*ranked[:MOST_KEYS], *further]
    fields = _fields(result, query_position, listed)
    full = next((full for full in _FULL_BARS if weights[ranked[0]] <= full), 1.0)
    bars = [_row(fields, i, full, width, stands_out=each == key) for i, each in enumerate(listed)]
    return Group(line(*title), _heading(fields, full), *bars, *_remarks(result, query_position, ranked, key))


def _why_not(result: HeadWeights | HeadView, query: int) -> str:
    """Why a query has no bars: it never had a key, or none is left without special tokens."""
    emptied = isinstance(result, HeadView) and result.head.answered[list(result.query_groups[query])].any()
    return NOTHING_LEFT if emptied else NO_KEY


@dataclass(frozen=True)
class _Fields:
    """The text of the columns left of the bars, one entry per listed key."""

    positions: list[int]
    names: list[str]
    weights: list[float]
    scores: list[str] | None

    @property
    def digits(self) -> int:
        return len(str(max(self.positions)))

    @property
    def label(self) -> int:
        return min(max(len("key"), *(cell_len(name) for name in self.names)), _MOST_LABEL)

    @property
    def score(self) -> int:
        """Width of the column of scores, 0 without any."""
        return 0 if self.scores is None else max(len("scaled"), *(len(text) for text in self.scores)) + 2


def _fields(result: HeadWeights | HeadView, query: int, keys: list[int]) -> _Fields:
    head = result if isinstance(result, HeadAttention) else None
    scaled = None if head is None else signed_texts(head.scaled[query, keys], 2).tolist()
    return _Fields(
        positions=[result.key_tokens.positions[key] for key in keys],
        names=[settled(result.key_tokens.names[key]) for key in keys],
        weights=[float(result.weights[query, key]) for key in keys],
        scores=scaled,
    )


def _heading(fields: _Fields, full: float) -> Text:
    key = " " * (fields.digits + 1) + left("key", fields.label)
    scaled = right("scaled", fields.score) if fields.scores else ""
    return line((f"{key}  weight{scaled}  full bar = {full:g}", DIM))


def _row(fields: _Fields, i: int, full: float, width: int, *, stands_out: bool) -> Text:
    name = f"{fields.positions[i]:>{fields.digits}} {left(fields.names[i], fields.label)}"
    scaled = right(fields.scores[i], fields.score) if fields.scores else ""
    numbers = f"  {weight_text(fields.weights[i], 3):>6}{scaled}  "
    room = max(width - cell_len(name + numbers), 8)
    style = HEADING if stands_out else Style.null()
    return line((name, style), (numbers, style), (bar(fields.weights[i] / full, room), BAR))


def _remarks(result: HeadWeights | HeadView, query: int, ranked: list[int], key: int | None) -> list[Text]:
    """What the bars leave out: further keys, masked keys, the share of a sink; and what a view is."""
    remarks = [] if key is None else [_rank(result, ranked, key)]
    if further := [each for each in ranked[MOST_KEYS:] if each != key]:
        share = weight_text(float(result.weights[query, further].sum()))
        remarks.append(f"{counted(len(further), 'more key')} share {share}")
    if masked := len(result.key_tokens) - len(ranked):
        remarks.append(f"{counted(masked, 'key')} masked")
    if not isinstance(result, HeadAttention):
        remarks.append(sums_words(result))
    elif result.sink is not None:
        remarks.append(f"the sink takes {weight_text(float(1 - result.weights[query, ranked].sum()))}")
    pieces = result.query_groups[query] if isinstance(result, HeadView) else (query,)
    special = special_words(head_of(result).special_mass_of(pieces), "the weight of this query")
    told = (special, " · ".join(view_words(result)))
    return [Text(line, style=DIM) for line in (" · ".join(remarks), *told) if line]


def _rank(result: HeadWeights | HeadView, ranked: list[int], key: int) -> str:
    """`3 watching is rank 10 of 11 keys`."""
    name = f"{result.key_tokens.positions[key]} {settled(result.key_tokens.names[key])}"
    if key not in ranked:
        return f"{name} is masked"
    return f"{name} is rank {ranked.index(key) + 1} of {counted(len(ranked), 'key')}"
