"""Which heads a question is about, and how their weights are viewed.

All of it is plain data, checked when it is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from attnscope.errors import InputError
from attnscope.session import selection
from attnscope.session.option import ATTENTION, WHICH, option, slots
from attnscope.vocabulary import Kind, Route, Special, Unit

SCALE = option(
    "--scale", metavar="sqrt|1|max|row|log", usual=None,
    help="How dark a weight is: by its square root from 0 to 1 (sqrt), in proportion from 0 to 1, to the "
    "largest (max) or to the largest of its row, or in equal ratios (log). Default: sqrt.",
)  # fmt: skip
ROWS = option(
    "--rows", metavar="N|all",
    help="How many queries the terminal lists, the most telling first, where the numbers of the whole "
    "matrix do not fit. Default: 20.",
)  # fmt: skip

if TYPE_CHECKING:
    from attnscope.session.listener import Listener

_ONE_BY_ONE = "find, ablate, explain and align take heads one by one"
Numbers = str | int | Sequence[int] | None  # of layers or heads: 3, "-1", [0, 3], "4-8", "all"
ROUTES = {route.option: route for route in Route}
_SPECIAL = {special.value: special for special in Special} | {"renormalize": Special.RENORMALISE}


KIND = option(
    "--kind", metavar="encoder|decoder|cross", panel=ATTENTION, under=WHICH, brief_metavar="KIND",
    help="Which attention of a model that has several. Default: cross.",
    brief="encoder, decoder or cross, of models with several",
)  # fmt: skip
TOWER = option(
    "--tower", metavar="NAME", panel=ATTENTION,
    help="Which part of a model that has attention in several, as `attnscope model` lists them.",
)  # fmt: skip
BLOCK = option(
    "--block", metavar="N", panel=ATTENTION,
    help="Which of the separate attentions of a layer that makes several (windows of a picture).",
)  # fmt: skip
ROUTE = option(
    "--route", metavar="takeover|custom|traced|returned", panel=ATTENTION,
    help="How to read the attention. Default: the first of these that the model allows.",
)  # fmt: skip
LAYERS = option(
    "--layer", "-l", metavar="N", panel=ATTENTION, under=WHICH,
    help="Layers, from 0: 3, -1, 0,3,7, 4-8 or all.",
    brief="from 0: 3, -1 (the last), 0,3,7, 4-8 or all",
)  # fmt: skip
HEADS = option(
    "--head", "--heads", metavar="N", panel=ATTENTION, under=WHICH, brief_metavar="N",
    help="Heads, from 0: 11, -1, 0,3,7, 4-8 or all. With their layer: L3H11, all heads of one L3, of "
    "several L3-5; for find, explain, ablate and align also L3H11,L2H10. For heads and flow also mean: "
    "over all heads of the layer that is named, or of all layers.",
    brief="the same: 11, -1, 0,3,7, 4-8, all; or L3H11, L3, L3-5",
)  # fmt: skip

ONE_LAYER = option(
    "--layer", "-l", metavar="N", panel=ATTENTION, under=WHICH, usual=None,
    help="Layer, from 0; -1 is the last. Default: 3, of fewer the middle one.",
    brief="from 0; -1 is last. Default: 3, else the middle",
)  # fmt: skip
ONE_HEAD = option(
    "--head", "--heads", metavar="N", panel=ATTENTION, under=WHICH, usual=None,
    help="Head, from 0; -1 is the last. With its layer: L3H11. Default: 11, of fewer the middle one.",
    brief="from 0; -1 is last. Default: 11, else the middle",
)  # fmt: skip
WORDS = option("--words", help="Join word pieces into words: the same as --by word.")
SPECIAL = option(
    "--special", metavar="show|hide|renormalise",
    help="Special tokens such as [CLS]: shown, left out, or left out and each row divided by what "
    "remains. Without this they are shown, but the strongest links of several heads pass them over.",
)  # fmt: skip
BY = option(
    "--by", metavar="token|word|sentence|passage", brief_metavar="UNIT",
    help="What rows and columns are: weights are summed over the keys of a unit and averaged over the "
    "queries of one. Passages are parted by blank lines; sentences end at .!? before white space, not "
    "before a small letter. A sentence is named by its number or by words of it.",
    brief="word, sentence or passage in place of tokens",
)  # fmt: skip
QUERY = option(
    "--query", "--from", metavar="TOKEN",
    help='Show what one query attends to: a token\'s text or its position; several words ("the door", '
    "4-5) are one query, their mean; the#2 is the second one.",
    brief="the token that looks: its text, the@7, position 5",
)  # fmt: skip
KEY = option(
    "--key", "--to", metavar="TOKEN",
    help="State the figures of one key, named likewise: several tokens are one key, their sum.",
    brief="the token that is looked at, named likewise",
)  # fmt: skip


@dataclass(frozen=True)
class Takes:
    """The choices of heads that a question allows beyond the same heads of every layer.

    `apart`: heads of several layers one by one; `means`: the mean over heads; `reads`: cross-attention by
    default where the model has it; `needs`: one kind of attention, and what to say of a model without it.
    """

    apart: bool = False
    means: bool = False
    reads: bool = False
    needs: tuple[Kind, str] | None = None


LISTS, APART, MEANS, READS = Takes(), Takes(apart=True), Takes(means=True), Takes(reads=True)
CROSS = Takes(True, needs=(Kind.CROSS, "attnscope find TEXT tells what is linked within one text"))


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Fields for which attention of a model is meant, and how it is read."""

    TAKES: ClassVar[Takes] = LISTS

    kind: Annotated[str | None, KIND] = None
    tower: Annotated[str | None, TOWER] = None
    block: Annotated[int, BLOCK] = 0
    route: Annotated[str | None, ROUTE] = None


@dataclass(frozen=True)
class Wanted(Attention):
    """The layers and heads that are asked for: numbers, or text such as `-1`, `0,3,7`, `4-8`, `all`.

    A head may be named with its layer, `L3H11`, and `L3` are all heads of a layer; heads of several layers
    that do not make up a list of each (`L3H11,L2H10`) are `apart`. `mean` is the mean over all heads, of one
    layer or of all. `USUAL` is the default layer and head of a question about one head.
    """

    USUAL: ClassVar[tuple[int, int] | None] = None

    layer: Annotated[Numbers, LAYERS] = None
    head: Annotated[Numbers, HEADS] = None
    takes: Takes = field(default=LISTS, kw_only=True)

    @classmethod
    def of(cls, asked: Attention, layer: Numbers, head: Numbers) -> Self:
        """These layers and heads with the attention fields of `asked`."""
        return cls(
            layer, head, takes=asked.TAKES, **{name: getattr(asked, name) for name in slots(Attention)}
        )

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
        """True where the mean over heads is asked for."""
        return bool(getattr(self, "_mean", False))

    @property
    def apart(self) -> tuple[selection.Head, ...]:
        """Pairs of layer and head that were named one by one over several layers."""
        found: tuple[selection.Head, ...] = getattr(self, "_apart", ())
        return found

    @property
    def all_layers(self) -> "Wanted":
        """Copy for every layer."""
        return replace(self, layer=None)

    def among(self, heads: Mapping[int, int], listener: "Listener") -> "Wanted":
        """Copy with the default layer and head filled in, of layers with `heads` heads each.

        Where the default is not there the middle one is taken, and the listener is told.
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
class OneWanted(Wanted):
    """One head, by default L3 H11, the one in the articles, or the middle one of a smaller model."""

    USUAL = (3, 11)


@dataclass(frozen=True)
class Looking:
    """How weights are viewed: by which unit, with or without special tokens; `words` means by word.

    Unless `special` shows them by name, the strongest links of several heads pass special tokens over.
    """

    words: Annotated[bool, WORDS] = False
    special: Annotated[str | None, SPECIAL] = None
    by: Annotated[str | None, BY] = None

    def __post_init__(self) -> None:
        if self.special is not None and self.special.casefold() not in _SPECIAL:
            raise InputError(f"--special is '{self.special}': {', '.join(Special)}")
        if self.by is not None and self.by.casefold() not in list(Unit):
            raise InputError(f"--by is '{self.by}': {', '.join(Unit)}")
        if self.words and self.unit is not Unit.WORD:
            raise InputError(f"--words is --by word, and --by {self.by} was given too: leave one out")

    @property
    def changes(self) -> bool:
        """True where the view differs from all tokens as they are."""
        return self.unit.joins or self.treatment is not Special.SHOW

    @property
    def unit(self) -> Unit:
        """The unit of rows and columns."""
        if self.by is None:
            return Unit.WORD if self.words else Unit.TOKEN
        return Unit(self.by.casefold())

    @property
    def treatment(self) -> Special:
        """The treatment of special tokens: shown, hidden or renormalised."""
        return Special.SHOW if self.special is None else _SPECIAL[self.special.casefold()]

    @property
    def how(self) -> dict[str, Any]:
        """Keyword arguments for the view: `by`, the unit, and `special`, the treatment of special tokens."""
        return {"by": self.unit, "special": self.treatment}

    @property
    def links_among_all(self) -> bool:
        """True where a strongest link may be one of special tokens."""
        return self.special is not None and self.treatment is Special.SHOW
