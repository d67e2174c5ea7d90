"""What the parts of a run are called: by what they are and which attention came before, in any model."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attnscope.capture.parts.leaves import Cut, Leaf
from attnscope.model.anatomy.dimensions import head_count
from attnscope.model.anatomy.sites import Site
from attnscope.results import Kind
from attnscope.results.claims.why import BIASES, LEFT, MLP, OTHER


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
