"""Which heads are asked for and how their weights are looked at, as plain data, checked when it is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from attnscope.errors import InputError
from attnscope.session import selection
from attnscope.vocabulary import Kind, Route, Special, Unit

if TYPE_CHECKING:
    from attnscope.session.listener import Listener

_ONE_BY_ONE = "find, ablate, explain and align take heads one by one"
Numbers = str | int | Sequence[int] | None  # of layers or heads: 3, "-1", [0, 3], "4-8", "all"
ROUTES = {route.option: route for route in Route}
_SPECIAL = {special.value: special for special in Special} | {"renormalize": Special.RENORMALISE}


@dataclass(frozen=True)
class Takes:
    """What a question takes beyond the same heads of every layer.

    That is heads `apart`, of several layers one by one, or `means` over heads. It `reads` what a writer
    writes from where that is asked: cross-attention, where there is any. It `needs` one kind of attention,
    or says what does without.
    """

    apart: bool = False
    means: bool = False
    reads: bool = False
    needs: tuple[Kind, str] | None = None


LISTS, APART, MEANS, READS = Takes(), Takes(apart=True), Takes(means=True), Takes(reads=True)
CROSS = Takes(True, needs=(Kind.CROSS, "attnscope find TEXT tells what is linked within one text"))


@dataclass(frozen=True)
class Wanted:
    """Which layers and heads of which attention: numbers, or text such as `-1`, `0,3,7`, `4-8`, `all`.

    A head may be named with its layer, `L3H11`, and `L3` are all heads of a layer; heads of several layers
    that do not make up a list of each (`L3H11,L2H10`) are `apart`. `mean` is the mean over all heads, of one
    layer or of all. Where one head is meant `USUAL` are the layer and the head that are taken where none is
    named.
    """

    USUAL: ClassVar[tuple[int, int] | None] = None

    layer: Numbers = None
    head: Numbers = None
    kind: str | None = None
    tower: str | None = None
    block: int = 0
    route: str | None = None
    takes: Takes = LISTS

    def __post_init__(self) -> None:
        if self.kind not in (None, *Kind):
            raise InputError(f"no kind of attention '{self.kind}': {', '.join(Kind)}")
        if self.takes.needs is not None and self.kind is None:
            object.__setattr__(self, "kind", self.takes.needs[0].value)
        if self.takes.needs is not None and self.kind != self.takes.needs[0]:
            raise InputError(f"this reads {self.takes.needs[0]}-attention, not {self.kind}: leave --kind out")
        if self.route not in (None, *ROUTES):
            raise InputError(f"no route '{self.route}': {', '.join(ROUTES)}")
        self._take_apart()
        self._take_mean()
        selection.parse(self.layer, "layer")
        selection.parse(self.head, "head")

    def _take_apart(self) -> None:
        named = selection.named_heads(self.head) if isinstance(self.head, str) else None
        if named is None:
            return
        if self.layer is not None:
            raise InputError(f"--head {self.head} names its layer: leave --layer out")
        if self.USUAL is not None and (named.apart or named.heads is None):
            raise InputError(f"--head {self.head} are several: this is of one head, such as L3H11")
        if named.apart and not self.takes.apart:
            each = f"--layer {named.layers} --head {named.heads}; {_ONE_BY_ONE}"
            raise InputError(f"--head {self.head}: here the same heads of every layer are meant, {each}")
        object.__setattr__(self, "layer", named.layers)
        object.__setattr__(self, "head", named.heads)
        object.__setattr__(self, "_apart", named.apart)

    def _take_mean(self) -> None:
        if not isinstance(self.head, str) or self.head.strip().casefold() != "mean":
            return
        if self.USUAL is not None:
            raise InputError("--head mean: the mean over heads has weights alone, this is of one head")
        if not self.takes.means:
            raise InputError("--head mean: heads and flow show the mean over heads, here name some, or all")
        object.__setattr__(self, "head", None)
        object.__setattr__(self, "_mean", True)

    @property
    def mean(self) -> bool:
        """Whether the mean over heads is meant."""
        return bool(getattr(self, "_mean", False))

    @property
    def apart(self) -> tuple[selection.Head, ...]:
        """Heads of several layers that were named one by one."""
        found: tuple[selection.Head, ...] = getattr(self, "_apart", ())
        return found

    @property
    def all_layers(self) -> "Wanted":
        """What is wanted, in every layer."""
        return replace(self, layer=None)

    def among(self, heads: Mapping[int, int], listener: "Listener") -> "Wanted":
        """What is wanted with nothing left open, of layers with so many heads each.

        What is open is the usual one, where that is not there the one in the middle, which is told.
        """
        if self.USUAL is None or None not in (self.layer, self.head) or not all(heads.values()):
            return self
        layer, head = self.layer, self.head
        usual_layer, usual_head = self.USUAL
        if layer is None:
            layer = selection.usual_or_middle(usual_layer, tuple(heads))
        if head is None:
            count = heads.get(layer, 0) if isinstance(layer, int) else 0
            count = count or min(heads.values())
            head = selection.usual_or_middle(usual_head, tuple(range(count)))
        if (self.layer is None and layer != usual_layer) or (self.head is None and head != usual_head):
            there = f"there is no L{usual_layer} H{usual_head} here"
            listener.notice(f"{there}: showing L{layer} H{head}, in the middle (--layer, --head choose)")
        return replace(self, layer=layer, head=head)


@dataclass(frozen=True)
class Looking:
    """How to look at weights: by which unit, with special tokens or without; `words` is by words.

    Unless special tokens are to be shown by name, the strongest links of several heads are those of others.
    """

    words: bool = False
    special: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        if self.special is not None and self.special.casefold() not in _SPECIAL:
            raise InputError(f"--special is '{self.special}': {', '.join(Special)}")
        if self.by is not None and self.by.casefold() not in list(Unit):
            raise InputError(f"--by is '{self.by}': {', '.join(Unit)}")
        if self.words and self.unit is not Unit.WORD:
            raise InputError(f"--words is --by word, and --by {self.by} was given too: leave one out")

    @property
    def changes(self) -> bool:
        """Whether weights are looked at in another way than by all tokens."""
        return self.unit.joins or self.treatment is not Special.SHOW

    @property
    def unit(self) -> Unit:
        """What rows and columns are."""
        if self.by is None:
            return Unit.WORD if self.words else Unit.TOKEN
        return Unit(self.by.casefold())

    @property
    def treatment(self) -> Special:
        """What is done with special tokens."""
        return Special.SHOW if self.special is None else _SPECIAL[self.special.casefold()]

    @property
    def links_among_all(self) -> bool:
        """Whether a strongest link may be one of special tokens."""
        return self.special is not None and self.treatment is Special.SHOW
