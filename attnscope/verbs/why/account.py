"""Splits an attention score into a sum over model parts: once by parts of the query, once of the key.

The query side splits the query vector, with the keys fixed; the key side splits the key vectors, with the
query fixed. Each sum is the whole score: the two are never added.
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
    """Identity of a part; `layer` and `head` may be None, `tower` is empty within the explained tower."""

    part: str
    layer: int | None = None
    head: int | None = None
    tower: str = ""

    @property
    def label(self) -> str:
        """Printed name: `L0 H2`, `MLP L0`, `position`, `cross L1 H3`."""
        layer = "" if self.layer is None else f"L{self.layer}"
        told = f"{layer} H{self.head}" if self.head is not None else f"{self.part} {layer}"
        return f"{self.tower} {told}".strip()

    @property
    def can_be_a_reason(self) -> bool:
        """True for heads and MLPs: embeddings and biases do not depend on what the model made of the text."""
        return self.head is not None or self.part == MLP

    def is_like(self, other: "Name") -> bool:
        """True where `other` is a control of this part: another head of its layer, or another MLP."""
        if self.head is None:
            return other.head is None and other[::3] == self[::3] and other != self
        return other.head not in (None, self.head) and other._replace(head=self.head) == self


class Names:
    """Maps the leaf tensors of a cut run to named parts (heads, MLPs, embeddings), for any architecture."""

    def __init__(self, sites: Sequence[Site], own: Site) -> None:
        self.sites = {site.path: site for site in sites}
        self.own = own
        self.places = set(map(_place, self.sites))

    @property
    def stacks(self) -> tuple[str, ...]:
        """Paths of the module lists that hold the attention layers."""
        return tuple({stack for stack, _ in self.places})

    def of(self, leaf: Leaf) -> Iterator[tuple[Name, tuple[slice | int, ...]]]:
        """Parts within a leaf, each with its index into the tensor: one per head of an attention output."""
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
        """Part of a nonlinear module: an MLP of an attention's layer, or a whole layer without attention."""
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


_AT_ONCE = 2**20  # most weights of a part's heads held at once
_SAME = 1e-5  # most difference of a weight between the cut run and the certified run
Gradients = dict[Leaf, Tensor]


@dataclass(frozen=True, eq=False)
class Row:
    """Differentiable scores of one query over its keys, before the softmax and any soft cap."""

    rule: Rule
    scores: Float[Tensor, " key"]
    softmax: Softmax
    number: int
    capped: bool

    def of(self, weights: Float[Tensor, " key"]) -> Tensor:
        """Sum of the scores weighted by `weights`; keys of weight zero may be masked."""
        meant = weights.nonzero()[:, 0]
        summed: Tensor = (self.scores[meant] * weights[meant].to(self.scores)).sum()
        return summed


def find_row(rule: Rule, call: AttentionCall, head: int, query: int, heads: int) -> Row:
    """Row of the cut run with the weights of `call`; `InputError` where no row has them."""
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
    """Row of a query, from head `number` (heads of all texts in the batch), undoing soft caps and clamps."""

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
    """True where a leaf has one number for each score, whatever the layout of heads and texts."""
    return leaf.tensor.shape[-2:] == scores.shape[-2:] and leaf.tensor.numel() == scores.numel()


class Account:
    """Splits one weighted sum of scores over the leaves of a run, on the query side and on the key side."""

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
        self.terms = slopes  # other terms of the score, such as a distance bias: on both sides
        ends: dict[Side, Tensor | float] = {Side.QUERY: 0.0, Side.KEY: 0.0}
        for leaf, slope in self.products:
            for side, operand, factor in zip(Side, _operands(leaf), _factors(leaf, slope), strict=True):
                ends[side] = ends[side] + (operand * factor).sum()
        self.ends = {side: self._gradients(end) for side, end in ends.items()}

    def shares(self, side: Side, names: Names) -> dict[Name, float]:
        """Share of every part in the sum, from one side."""
        found = shares(self.ends[side], names)
        for name, value in shares(self.terms, names).items():
            found[name] = found.get(name, 0.0) + value
        return found

    def miss(self, side: Side, names: Names) -> float:
        """Error of the summed shares of a side, relative to the sum or to 1 % of all absolute shares."""
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
        """Key-side shares where the query holds only the contribution of the `chosen` leaves."""
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
    """Value of `made` from the `chosen` leaves alone, within their masks; None where it has none of them.

    `made` is linear in the leaves, so the gradient of a gradient gives this forward product.
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
    """Gradient times value of each entry of a leaf; 0 where the gradient is 0, even for infinite values."""
    return exact(torch.where(slope == 0, torch.zeros_like(slope), slope * leaf.tensor.detach()))


def shares(gradients: Gradients, names: Names) -> dict[Name, float]:
    """Share of every part in a sum: gradient times value, summed over its entries."""
    found: dict[Name, float] = defaultdict(float)
    for leaf, slope in gradients.items():
        for name, index in names.of(leaf):
            found[name] += float(_times(leaf, slope)[index].sum())
    return dict(found)


def source_shares(gradients: Gradients, names: Names) -> dict[Name, Float[Tensor, " source"]]:
    """Share of each head by source token, for leaves with a known attention pattern and values."""
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
    """Masks of one part: for each of its leaves, the rows (of its head) that the sum depends on."""
    found: Gradients = {}
    for leaf, slope in gradients.items():
        for own, index in names.of(leaf):
            if own == name:
                mask = torch.zeros_like(slope[..., :1], dtype=torch.bool)
                mask[index] = (slope[index] != 0).any(-1, keepdim=True)
                found[leaf] = mask
    return found
