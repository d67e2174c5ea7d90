"""The outline of a model: its attention layers, derived from its config and modules without weights.

No weights are read. `seen` layers have figures from a dry run of the model, in which operations compute only
the shapes of their results; other figures are those that the attention module states. None stands for
unknown.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from attnscope.results.base.origin import Kind, Route
from attnscope.results.base.presented import Arrays, Presented, Value, columns_of, fits


class Case(StrEnum):
    """The number of places in a model that have attention."""

    NOTHING = "nothing"
    ONE = "one tower"
    SEVERAL = "several towers"


@dataclass(frozen=True)
class Position:
    """One way in which an attention encodes positions.

    `scheme` is its name. `size` is the number of position embeddings, `dims` how many of a head's dimensions
    are rotated, `base` that of the rotation's wavelengths, `variant` the change to them for long texts.
    """

    scheme: str
    size: int | None = None
    dims: int | None = None
    base: float | None = None
    variant: str | None = None


@dataclass(frozen=True)
class LayerOutline:
    """One attention layer; `blocks` counts the separate attentions it makes for one input.

    `seen` says whether the dry run (without weights) reached it, with so many `queries` and `keys`. `heads`
    are query heads, `key_heads` the key/value heads they share; `dim` is the size of queries and keys,
    `value_dim` of values. `chunk` is a window that does not slide, `sinks` whether its heads have sinks.
    `positions` are its position encodings. `scale`, `softcap` and `window` are as in `HeadAttention`.
    """

    layer: int
    module: str
    seen: bool
    heads: int | None = None
    key_heads: int | None = None
    dim: int | None = None
    value_dim: int | None = None
    scale: float | None = None
    positions: tuple[Position, ...] = ()
    window: int | None = None
    chunk: int | None = None
    softcap: float | None = None
    sinks: bool | None = None
    blocks: int | None = None
    queries: int | None = None
    keys: int | None = None

    def check_parts(self) -> None:
        sizes = (self.heads, self.key_heads, self.dim, self.value_dim)
        fits(all(size is None or size > 0 for size in sizes), "a layer has no heads, or heads without a size")


@dataclass(frozen=True)
class TowerOutline:
    """The attention layers of one kind in one part of the model; `context` is the most tokens it reads.

    `pattern` is the path of its attentions, `kernel` what computes them.
    """

    name: str
    kind: Kind
    pattern: str
    route: Route
    kernel: str
    context: int | None
    layers: tuple[LayerOutline, ...]


@dataclass(frozen=True)
class Gap:
    """The `layers` of the module list at `stack` that have no attention, but a `module_class`."""

    stack: str
    layers: tuple[int, ...]
    module_class: str


@dataclass(frozen=True)
class Storage:
    """The weight files of a model; `place` is where they are.

    `files` is their number, `size` their bytes and `precision` their dtype, None where unknown. `shards` maps
    each of several files to its bytes, None where unknown.

    """

    place: str
    files: int
    size: int | None
    precision: str | None
    shards: dict[str, int | None]


@dataclass(frozen=True)
class Cost:
    """The estimated cost of one head of one layer, from shapes, for inputs of `length` tokens.

    `forward_flops` are those of the model's run up to this layer's attention, `head_flops` those of
    recomputing the head once, which the certificate repeats up to `repeats` times with a fault. `weights`
    are bytes of the parameters loaded in float32, `operands` of the layer's queries, keys, values and
    output, `kernel` of the model's own scores and weights of all heads, `reference` of ours for this head in
    float64. A length `beyond` the model's context cannot be run. Other work and memory of a run comes on
    top; times are not estimated, since they vary and an outline does not. `queries` and `keys` are their
    numbers. `layers_loaded` and `shards` are the layers and files to read, None and empty where unknown.
    """

    tower: str
    kind: Kind
    layer: int
    length: int
    queries: int
    keys: int
    forward_flops: int
    head_flops: int
    repeats: int
    layers_loaded: int | None
    weights: int
    operands: int
    kernel: int
    reference: int
    shards: tuple[str, ...]
    beyond: bool = False

    @property
    def pairs(self) -> int:
        """Bytes of all query-key matrices: the model's scores and weights, and the recomputed ones."""
        return self.kernel + self.reference

    @property
    def flops(self) -> int:
        """Floating-point operations of the model's run and of all recomputations."""
        return self.forward_flops + self.repeats * self.head_flops

    @property
    def memory(self) -> int:
        """Bytes of weights, operands and query-key matrices together."""
        return self.weights + self.operands + self.kernel + self.reference

    def derived(self) -> dict[str, Value]:
        return {"flops": self.flops, "bytes": self.memory}


@dataclass(frozen=True, eq=False, repr=False)
class Outline(Presented):
    """The outline of a model: its layers, weight files and costs, without reading weights.

    `requested` is the name asked for, `model` the one found, `demo` whether it is bundled, `revision` its
    commit, `architecture` and `model_type` its class and family, `parameters` their number, `versions` those
    of the libraries. `length` is that of the text in the dry run, `run` says why it ended early, `unlisted`
    why nothing is known of the weights; both may be empty. `further` are the costs at other lengths.
    """

    requested: str
    model: str
    demo: bool
    revision: str | None
    architecture: str
    model_type: str
    versions: dict[str, str]
    parameters: int
    storage: Storage | None
    towers: tuple[TowerOutline, ...]
    gaps: tuple[Gap, ...] = field(metadata={"file": "without_attention"})
    length: int
    run: str = field(metadata={"file": "run_problem"})
    cost: Cost | None
    unlisted: str = ""
    further: tuple[Cost, ...] = ()

    for_readers = ("verdict", "case")

    @property
    def case(self) -> Case:
        """The number of places that have attention."""
        return (Case.NOTHING, Case.ONE, Case.SEVERAL)[min(len(self.towers), 2)]

    @property
    def costs(self) -> tuple[Cost, ...]:
        """The cost at every requested length, in order."""
        return () if self.cost is None else (self.cost, *self.further)

    def derived(self) -> dict[str, Value]:
        layers = [
            {"tower": tower.name, "kind": tower.kind, **vars(layer)}
            for tower in self.towers
            for layer in tower.layers
        ]
        return {"bytes_float32": 4 * self.parameters, "layers": layers}

    def npz_columns(self) -> Arrays:
        layers = (layer for tower in self.towers for layer in tower.layers)
        return columns_of(layers, ("layer", "heads", "key_heads", "dim", "value_dim", "queries", "keys"))
