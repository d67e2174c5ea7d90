"""The score of one query and key as a sum over parts of the run, once from each of its two ends.

The query side tells the score by what the query is made of, with the keys as they are; the key side by what
the keys are made of, with the query as it is. Each is the whole score: the two are never added.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.attention import AttentionCall
from attnscope.capture.parts.rule import Cut, Leaf, Rule, Softmax, stranger
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.model.anatomy.towers import head_count
from attnscope.reference import exact
from attnscope.results import Kind
from attnscope.verbs.why.result import BIASES, LEFT, MLP, OTHER, Side


class Name(NamedTuple):
    """What a part is: `layer` and `head` are None where it has none, `tower` is empty for our own."""

    part: str
    layer: int | None = None
    head: int | None = None
    tower: str = ""

    @property
    def label(self) -> str:
        """`L0 H2`, `MLP L0`, `position`, `cross L1 H3`."""
        layer = "" if self.layer is None else f"L{self.layer}"
        told = f"{layer} H{self.head}" if self.head is not None else f"{self.part} {layer}"
        return f"{self.tower} {told}".strip()

    @property
    def can_be_a_reason(self) -> bool:
        """Embeddings and biases have shares, and are there whatever the model has made of the text."""
        return self.head is not None or self.part == MLP

    def is_like(self, other: "Name") -> bool:
        """Whether `other` is a control of this part: another head of its layer, or another MLP."""
        if self.head is None:
            return other.head is None and other[::3] == self[::3] and other != self
        return other.head not in (None, self.head) and other._replace(head=self.head) == self


class Names:
    """What the leaves of a run are called: by what they are and which attention came before, in any model."""

    def __init__(self, sites: Sequence[Site], own: Site) -> None:
        self.sites = {site.path: site for site in sites}
        self.own = own
        self.places = set(map(_place, self.sites))

    @property
    def stacks(self) -> tuple[str, ...]:
        """The lists of modules that attentions stand in."""
        return tuple({stack for stack, _ in self.places})

    def of(self, leaf: Leaf) -> Iterator[tuple[Name, tuple[slice | int, ...]]]:
        """The parts that a leaf holds, and where in it: of attention one for each head."""
        site = self.sites.get(leaf.site[0])
        layer = None if site is None else site.layer_of(leaf.site[1])
        if leaf.cut is Cut.ATTENTION and site is not None and leaf.pattern is not None:
            axis = leaf.axis or 0
            count = leaf.tensor.shape[axis]
            if head_count(site.module) in (None, count):
                for head in range(count):
                    yield Name("head", layer, head, self._tower(site)), (*[slice(None)] * axis, head)
                return
        yield self._plain(leaf, site, layer), ()

    def _tower(self, site: Site) -> str:
        return "" if site.tower == self.own.tower else str(site.kind)

    def _half(self, site: Site) -> str:
        of_encoder = [each.kind is Kind.ENCODER for each in (site, self.own)]
        return "" if of_encoder == [False, False] else self._tower(site)

    def _plain(self, leaf: Leaf, site: Site | None, layer: int | None) -> Name:
        told = f"{leaf.owner} {leaf.key[0]}".lower()
        if leaf.cut is Cut.NONLINEAR:
            return self._nonlinear(leaf.key[0], site, layer)
        if leaf.cut is Cut.TANGENT:
            return Name(LEFT)
        if leaf.cut is Cut.ATTENTION and site is not None:
            return Name("attention", layer, None, self._tower(site))
        if leaf.cut is Cut.CONSTANT and leaf.owner and "pos" not in told:
            return Name(BIASES)
        if any(each in told for each in ("pos", "wpe", "relative")):
            return Name("position")
        if leaf.cut is Cut.EMBEDDING:
            return Name("segment" if "type" in told else "token")
        return Name("input" if leaf.cut is Cut.INPUT else OTHER)

    def _nonlinear(self, module: str, site: Site | None, layer: int | None) -> Name:
        """An MLP stands in the layer of an attention; a layer without one is a part as a whole."""
        place = _place(module)
        if site is not None and module.startswith(site.path):
            return Name("position") if "pos" in module else Name("attention", layer, None, self._tower(site))
        if (
            place[1] is not None
            and place not in self.places
            and place[0] in {stack for stack, _ in self.places}
        ):
            return Name("layer", place[1])
        return Name("input") if site is None else Name(MLP, layer, None, self._half(site))


def _place(path: str) -> tuple[str, int | None]:
    parts = path.split(".")
    number = next((i for i, part in enumerate(parts) if part.isdigit()), None)
    return (path, None) if number is None else (".".join(parts[:number]), int(parts[number]))


_AT_ONCE = 2**20  # weights of a part's heads that are held together
_SAME = 1e-5  # of a weight: how far the run under the rule may stray from the one that was certified
Gradients = dict[Leaf, Tensor]


@dataclass(frozen=True, eq=False)
class Row:
    """The scores of one query over the keys that it may see, alive, before their softmax and any soft cap."""

    rule: Rule
    scores: Float[Tensor, " key"]
    softmax: Softmax
    number: int
    capped: bool

    def of(self, weights: Float[Tensor, " key"]) -> Tensor:
        """A weighted sum of scores; the keys without a weight may be masked."""
        meant = weights.nonzero()[:, 0]
        summed: Tensor = (self.scores[meant] * weights[meant].to(self.scores)).sum()
        return summed


def find_row(rule: Rule, call: AttentionCall, head: int, query: int, heads: int) -> Row:
    """The row that the call was captured with. `InputError` where the run under the rule has no such row."""
    expected = exact(call.rows([query]).weights[head][0])
    number = call.block * heads + head
    for softmax in rule.softmaxes:
        weights = softmax.weights
        if softmax.site != (call.module, call.call) or weights.ndim < 3:
            continue
        flat = weights.reshape(-1, *weights.shape[-2:])
        if flat.shape[0] % heads or number >= len(flat) or flat.shape[1] <= softmax.row(query):
            continue
        row = exact(flat[number, softmax.row(query)])[: len(expected)].to(expected)
        if row.shape == expected.shape and torch.allclose(row, expected, rtol=0, atol=_SAME):
            return row_of(rule, softmax, number, query)
    raise InputError(
        f"L{call.layer} H{head} cannot be taken apart: cut into parts, the model gives other weights there, "
        "or makes them in another way"
    )


def row_of(rule: Rule, softmax: Softmax, number: int, query: int) -> Row:
    """The row of a query of a head, by its number among those of all texts: before bounds and a soft cap."""

    def of(scores: Tensor) -> Tensor:
        return scores.reshape(-1, *scores.shape[-2:])[number, softmax.row(query)]

    row, capped = of(softmax.scores), False
    best = int(of(softmax.weights).argmax())
    while row.requires_grad:
        seen = [(leaf, leaf.source) for leaf in rule.leaves.values() if _alike(leaf, softmax.scores)]
        slopes = _gradient(row[best], [leaf.tensor for leaf, _ in seen])
        through = [
            (leaf, source, slope)
            for (leaf, source), slope in zip(seen, slopes, strict=True)
            if slope is not None and source is not None
        ]
        if not through:
            break
        leaf, source, slope = through[0]
        row, capped = of(source) * slope.abs().max(), capped or leaf.key[1] == "tanh"
    return Row(rule, row, softmax, number, capped)


def _gradient(number: Tensor, of: Sequence[Tensor]) -> Sequence[Tensor | None]:
    return torch.autograd.grad(number, of, retain_graph=True, allow_unused=True) if of else ()


def _alike(leaf: Leaf, scores: Tensor) -> bool:
    """Whether a leaf has a number for each score, however heads and texts are arranged before them."""
    return leaf.tensor.shape[-2:] == scores.shape[-2:] and leaf.tensor.numel() == scores.numel()


class Account:
    """Both sides of one weighted sum of scores, leaf by leaf."""

    def __init__(self, row: Row, weights: Float[Tensor, " key"]) -> None:
        self.row, self.leaves = row, list(row.rule.leaves.values())
        total = row.of(weights)
        self.total = float(total.detach())
        slopes = self._gradients(total)
        self.products = [(leaf, slopes.pop(leaf)) for leaf in [*slopes] if leaf.cut is Cut.PRODUCT]
        if not self.products:
            through = next((leaf.key[1] for leaf in slopes if leaf.cut is Cut.NONLINEAR), None)
            how = f"it goes through {through}" if through else "it is no product of queries and keys"
            raise InputError(f"this score cannot be taken apart: {how}")
        self.terms = slopes  # what else is in the score, such as a term for the distance: of both sides
        ends: dict[Side, Tensor | float] = {Side.QUERY: 0.0, Side.KEY: 0.0}
        for leaf, slope in self.products:
            for side, operand, factor in zip(Side, _operands(leaf), _factors(leaf, slope), strict=True):
                ends[side] = ends[side] + (operand * factor).sum()
        self.ends = {side: self._gradients(end) for side, end in ends.items()}

    def shares(self, side: Side, names: Names) -> dict[Name, float]:
        """What every part has of the sum, told from one side."""
        found = shares(self.ends[side], names)
        for name, value in shares(self.terms, names).items():
            found[name] = found.get(name, 0.0) + value
        return found

    def miss(self, side: Side, names: Names) -> float:
        """How far the parts of a side miss the sum, as a part of it, or of a hundredth of them all."""
        parts = self.shares(side, names).values()
        size = max(abs(self.total), 0.01 * sum(map(abs, parts)))
        return abs(sum(parts) - self.total) / size if size else 0.0

    def _gradients(self, number: Tensor | float) -> Gradients:
        if not isinstance(number, Tensor) or not number.requires_grad:
            return {}
        if (name := stranger(number)) is not None:
            raise InputError(f"this score cannot be taken apart: {name} is not known to be linear")
        slopes = _gradient(number, [leaf.tensor for leaf in self.leaves])
        return {
            leaf: slope
            for leaf, slope in zip(self.leaves, slopes, strict=True)
            if slope is not None and slope.any()
        }

    def paired(self, chosen: Gradients, names: Names) -> dict[Name, float]:
        """The key side of what some leaves, within their masks, bring to the query alone."""
        end: Tensor | float = 0.0
        for leaf, slope in self.products:
            query, key = _operands(leaf)
            alone = _alone(query, chosen)
            if alone is not None:
                blank = key.detach().requires_grad_()
                (factor,) = torch.autograd.grad(leaf.again(alone, blank), blank, slope)
                end = end + (key * factor).sum()
        return shares(self._gradients(end), names)


def _operands(leaf: Leaf) -> tuple[Tensor, Tensor]:
    assert leaf.operands is not None, "a product has two"
    return leaf.operands


def _factors(leaf: Leaf, slope: Tensor) -> tuple[Tensor, ...]:
    blanks = tuple(each.detach().requires_grad_() for each in _operands(leaf))
    return torch.autograd.grad(leaf.again(*blanks), blanks, slope)


def _alone(made: Tensor, chosen: Gradients) -> Tensor | None:
    """What `made` would be of some leaves alone, within the rows and heads that `chosen` keep: it is linear.

    The gradient of a gradient: the only way forward through a graph that was recorded backward.
    """
    blank = torch.zeros_like(made).requires_grad_()
    leaves = [leaf.tensor for leaf in chosen]
    slopes = torch.autograd.grad(made, leaves, blank, create_graph=True, allow_unused=True)
    parts = [
        (slope * leaf.tensor.detach() * mask).sum()
        for (leaf, mask), slope in zip(chosen.items(), slopes, strict=True)
        if slope is not None
    ]
    if not parts:
        return None
    (alone,) = torch.autograd.grad(sum(parts[1:], parts[0]), blank, retain_graph=True)
    return alone.detach()


def _times(leaf: Leaf, slope: Tensor) -> Tensor:
    """Each entry of a leaf times its gradient; of what nothing depends on nothing, were it infinite."""
    return exact(torch.where(slope == 0, torch.zeros_like(slope), slope * leaf.tensor.detach()))


def shares(gradients: Gradients, names: Names) -> dict[Name, float]:
    """What every part has of a sum."""
    found: dict[Name, float] = defaultdict(float)
    for leaf, slope in gradients.items():
        for name, index in names.of(leaf):
            found[name] += float(_times(leaf, slope)[index].sum())
    return dict(found)


def source_shares(gradients: Gradients, names: Names) -> dict[Name, Float[Tensor, " source"]]:
    """What of each head's share came from each token that it looked at, where that was followed."""
    found: dict[Name, Tensor] = {}
    for leaf, slope in gradients.items():
        if leaf.pattern is None or leaf.values is None:
            continue
        lengths = leaf.tensor.shape[:-2], leaf.values.shape[-2:]
        values, heads = leaf.values.expand(*lengths[0], *lengths[1]), list(names.of(leaf))
        felt = (slope != 0).any(-1).reshape(-1, slope.shape[-2]).any(0).nonzero()[:, 0]
        size = max(1, _AT_ONCE // values[..., 0].numel())
        for rows in (felt[start : start + size] for start in range(0, len(felt), size)):
            weights = leaf.pattern(rows)
            for name, index in heads:
                taken = exact(weights[index]) * (exact(slope[index][..., rows, :]) @ exact(values[index]).mT)
                found[name] = found.get(name, 0.0) + taken.flatten(0, -2).sum(0)
    return found


def named_masks(gradients: Mapping[Leaf, Tensor], names: Names, name: Name) -> Gradients:
    """Where a part is: of each of its leaves the rows that a sum depends on, one of several heads."""
    found: Gradients = {}
    for leaf, slope in gradients.items():
        for own, index in names.of(leaf):
            if own == name:
                mask = torch.zeros_like(slope[..., :1], dtype=torch.bool)
                mask[index] = (slope[index] != 0).any(-1, keepdim=True)
                found[leaf] = mask
    return found
