"""One stage of a head (weights, scores, q, k, v, output) as a panel of numbers with named axes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from attnscope.render.kit.numbers import largest_magnitude
from attnscope.render.kit.palette import Scale, scale_of
from attnscope.results import HeadView, HeadWeights
from attnscope.tokens import Tokens
from attnscope.vocabulary import Scaling

Show = Literal["weights", "scores", "scaled", "q", "k", "v", "output"]
SHOWS: tuple[Show, ...] = get_args(Show)
VECTORS: tuple[Show, ...] = ("q", "k", "v", "output")
OF_KEYS: tuple[Show, ...] = ("k", "v")

TITLES: dict[Show, str] = {
    "weights": "attention weight",
    "scores": "score q·k",
    "scaled": "scaled score, what enters the softmax",
    "q": "query vectors",
    "k": "key vectors",
    "v": "value vectors",
    "output": "output of the head",
}


MOST_LISTED = 20  # queries of a text whose numbers do not fit
NO_KEY, NOTHING_LEFT = "no valid key", "nothing left"


@dataclass(frozen=True, eq=False)
class Panel:
    """One stage of a head as a matrix; without `column_tokens` the columns are a vector's dimensions.

    `visible` is False for masked pairs, `answered` for queries without a visible key, which show
    `unanswered`. `limit` replaces the extent where several panels share one, `common` the scale; `scaling` is
    the kind of scale. `form` writes a number where the stage's own form does not fit.
    """

    show: Show
    row_word: str
    row_tokens: Tokens
    column_tokens: Tokens | None
    values: Float[np.ndarray, "row column"]
    visible: Bool[np.ndarray, "row column"]
    answered: Bool[np.ndarray, " row"]
    unanswered: str = NO_KEY
    limit: float | None = None
    scaling: Scaling = Scaling.SQRT
    common: Scale | None = None
    form: Callable[[float], str] | None = None
    columns: str = "key"

    @property
    def title(self) -> str:
        return TITLES[self.show]

    @property
    def keys(self) -> Tokens:
        """The key tokens of the columns; an AssertionError for vectors."""
        assert self.column_tokens is not None, "vectors have no names for their columns"
        return self.column_tokens

    @property
    def column_word(self) -> str:
        return "dimension" if self.column_tokens is None else self.columns

    @property
    def columns_apart(self) -> bool:
        """True where some column is a sentence that no row is, so its number alone does not identify it."""
        return not set(_sentences(self.column_tokens)) <= set(_sentences(self.row_tokens))

    @property
    def extent(self) -> float:
        """Largest visible magnitude, the end of a colour scale around 0; 1 for weights."""
        if self.limit is not None:
            return self.limit
        return 1.0 if self.show == "weights" else largest_magnitude(self.values[self.visible])

    @cached_property
    def scale(self) -> Scale:
        """The scale of a panel of weights."""
        return self.common or scale_of(self.values, self.visible, self.scaling)

    @property
    def masked(self) -> bool:
        """True where a pair is masked whose query may look at other keys."""
        return bool((~self.visible & self.answered[:, None]).any())


def _sentences(tokens: object) -> Iterable[tuple[int, str]]:
    if not isinstance(tokens, Tokens) or not tokens.of_sentences:
        return ()
    return zip(tokens.positions, tokens.in_full, strict=True)


def panel(result: HeadWeights | HeadView, show: Show, scaling: Scaling = Scaling.SQRT) -> Panel:
    """The stage `show` of a head. Dimensions of a vector are all visible, unless its query had no key.

    A view has only weights.
    """
    if isinstance(result, HeadView):
        return _viewed(result, scaling)
    values: Float[np.ndarray, "row column"] = getattr(result, show)
    pairs = show in ("weights", "scores", "scaled")
    by_query = show not in ("k", "v")
    tokens = result.query_tokens if by_query else result.key_tokens
    answered = result.answered if pairs or show == "output" else np.ones(len(tokens), bool)
    visible = result.allowed if pairs else np.repeat(answered[:, None], values.shape[1], axis=1)
    return Panel(
        show=show,
        row_word="query" if by_query else "key",
        row_tokens=tokens,
        column_tokens=result.key_tokens if pairs else None,
        values=values,
        visible=visible,
        answered=answered,
        scaling=scaling,
    )


def only(shown: Panel, row: int) -> Panel:
    """One row of a panel, on the colour scale of the whole."""
    tokens = replace(shown.row_tokens.only([row]), numbers=(shown.row_tokens.positions[row],))
    return replace(
        shown,
        row_tokens=tokens,
        values=shown.values[[row]],
        visible=shown.visible[[row]],
        answered=shown.answered[[row]],
        limit=shown.extent,
    )


def _viewed(view: HeadView, scaling: Scaling) -> Panel:
    return Panel(
        show="weights",
        row_word="query",
        row_tokens=view.query_tokens,
        column_tokens=view.key_tokens,
        values=view.weights,
        visible=view.allowed & view.answered[:, None],
        answered=view.answered,
        unanswered=NOTHING_LEFT if view.emptied else NO_KEY,
        scaling=scaling,
    )
