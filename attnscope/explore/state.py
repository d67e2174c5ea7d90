"""State of the explorer as plain data; each key press is a function from one state to the next.

It knows neither screen nor model nor results. A state's positions always exist in its scene.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from attnscope.errors import InputError
from attnscope.results import Provenance
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Special

_JUMP = re.compile(r"\s*[Ll]?\s*([0-9]{1,5})\s*[.,:\s]?\s*[Hh]?\s*([0-9]{1,5})\s*")
Head = tuple[int, int]


class View(StrEnum):
    """The view in the largest pane."""

    MATRIX = "weights"
    TERMS = "score by parts"
    MAP = "map"
    FOUND = "heads that link"
    WITHOUT = "heads taken away"
    BESIDE = "beside the second sentence"


@dataclass(frozen=True)
class Tower:
    """One attention tower of the model: its name, its layers, and the number of heads in each.

    `pattern` identifies the tower.
    """

    name: str
    kind: Kind
    pattern: str
    layers: tuple[int, ...]
    heads: int


@dataclass(frozen=True, eq=False)
class Scene:
    """A text read by a model: tokens of both sides, the model's towers, and where to start.

    `place` is the first head and `first` the first query to show; `medium` describes a picture or sound;
    `mask` is the mask token's text, empty where the model fills no blanks.
    """

    model: str
    text: str
    towers: tuple[Tower, ...]
    tower: Tower
    queries: Tokens
    keys: Tokens
    provenance: Provenance
    medium: str = ""
    first: int = 0
    place: Head = (0, 0)
    mask: str = ""

    @property
    def one_side(self) -> bool:
        """True for self-attention, where queries and keys are the same tokens."""
        return self.tower.kind is not Kind.CROSS

    @property
    def in_pieces(self) -> bool:
        """True where some word of the text is several tokens."""
        sides = [] if self.medium else [self.queries, self.keys]
        words = [[(each.part, each.word) for each in side.items if each.word is not None] for side in sides]
        return any(len(set(each)) < len(each) for each in words)

    def is_masked(self, query: int) -> bool:
        """True where the query's token is the mask token."""
        return bool(self.mask) and self.queries.items[query].piece == self.mask

    def with_mask(self, query: int) -> str:
        """The text with a mask in place of the query's token; `InputError` where that is impossible."""
        if not self.mask:
            raise InputError(f"{self.model} fills in no blanks here: there is no mask to put in the text")
        token, name = self.queries.items[query], self.queries.named(query)
        if self.is_masked(query):
            raise InputError(f"{name} is a blank already: e changes the sentence")
        if token.span is None or token.added:
            raise InputError(f"{name} is not of the text: go to a word of it")
        if token.part:
            raise InputError(f"{name} is of the second text: blanks are put into the first")
        text, (start, end) = self.queries.texts[0], token.span
        start += len(text[start:end]) - len(text[start:end].lstrip())  # a token may begin with a blank
        return text[:start] + self.mask + text[end:]


@dataclass(frozen=True)
class State:
    """The explorer's state: chosen head, query and key (None: the strongest), measure, view, options."""

    scene: Scene
    layer: int
    head: int
    query: int = 0
    key: int | None = None
    measure: str = "entropy"
    view: View = View.MATRIX
    words: bool = False
    special: Special = Special.SHOW
    removed: tuple[Head, ...] = ()
    other: str | None = None
    sought: tuple[int, int] | None = None

    @property
    def place(self) -> Head:
        return self.layer, self.head

    @property
    def name(self) -> str:
        return f"L{self.layer} H{self.head}"

    def to_head(self, layer: int, head: int) -> "State":
        """The state at the nearest layer and head that exist."""
        layers = self.scene.tower.layers
        nearest = min(layers, key=lambda there: abs(there - layer))
        return replace(self, layer=nearest, head=_within(head, self.scene.tower.heads))

    def by_heads(self, layers: int, heads: int) -> "State":
        """The state `layers` further down and `heads` further right, within the grid."""
        there = self.scene.tower.layers
        row = _within(there.index(self.layer) + layers, len(there))
        return replace(self, layer=there[row], head=_within(self.head + heads, self.scene.tower.heads))

    def to_query(self, query: int) -> "State":
        """The state at a query, whose key follows the strongest one."""
        return replace(self, query=_within(query, len(self.scene.queries)), key=None)

    def to_key(self, key: int) -> "State":
        return replace(self, key=_within(key, len(self.scene.keys)))

    def to_pair(self, query: int, key: int) -> "State":
        return self.to_query(query).to_key(key)

    def jumped(self, where: str) -> "State":
        """The state at the head that `3.11`, `L3H11` or `3 11` names; `InputError` where there is none."""
        match = _JUMP.fullmatch(where)
        tower = self.scene.tower
        there = f"layers {tower.layers[0]}-{tower.layers[-1]}, heads 0-{tower.heads - 1}"
        if match is None:
            raise InputError(f"'{where}' names no head: write 3.11 ({there})")
        layer, head = int(match[1]), int(match[2])
        if layer not in tower.layers or head >= tower.heads:
            raise InputError(f"no head L{layer} H{head}: {there}")
        return replace(self, layer=layer, head=head)

    def shows(self, view: View) -> "State":
        """The state with a view, or with the matrix where that view is already shown."""
        return replace(self, view=View.MATRIX if self.view is view else view)

    def seeks(self, key: int) -> "State":
        """The state that shows the heads linking the query to this key."""
        return replace(self, view=View.FOUND, sought=(self.query, key), key=key)

    def takes(self) -> "State":
        """The state with the chosen head removed or put back, and the view of removed heads while there are
        any."""
        kept = tuple(place for place in self.removed if place != self.place)
        removed = kept if self.place in self.removed else (*self.removed, self.place)
        view = View.WITHOUT if removed else View.MATRIX
        return replace(self, removed=removed, view=view)

    def measured(self, measure: str) -> "State":
        return replace(self, measure=measure)

    def with_special(self) -> "State":
        """The state with the next way to treat special tokens."""
        every = list(Special)
        return replace(self, special=every[(every.index(self.special) + 1) % len(every)])

    def beside(self, other: str | None) -> "State":
        """The state with a second text beside the first; None shows the first alone."""
        return replace(self, other=other, view=View.MATRIX if other is None else View.BESIDE)

    def on(self, scene: Scene) -> "State":
        """The state for a newly read text: same head and query position; answers of the old text are dropped.

        What was found, taken away or held beside goes with the attention that it was of.
        """
        same = scene.tower.pattern == self.scene.tower.pattern
        fresh = replace(self, scene=scene, key=None, sought=None)
        if scene.in_pieces is not self.scene.in_pieces:
            fresh = replace(fresh, words=scene.in_pieces)
        if not same:
            fresh = replace(fresh, removed=(), other=None)
        if fresh.view in (View.FOUND, View.BESIDE) or (fresh.view is View.WITHOUT and not fresh.removed):
            fresh = replace(fresh, view=View.MATRIX)
        if same and self.view is View.BESIDE and self.other is not None:
            fresh = replace(fresh, view=View.BESIDE)
        return fresh.to_head(self.layer, self.head).to_query(self.query)


def start(scene: Scene) -> State:
    """The first state: the scene's own head and query, by words where some are several tokens."""
    return State(scene, *scene.place, words=scene.in_pieces).to_query(scene.first)


def _within(number: int, count: int) -> int:
    return min(max(number, 0), max(count - 1, 0))
