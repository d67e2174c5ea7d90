"""One construction: which parts stand where, on which route, in which layer; how it is built and asked.

    place (`model`) x deed and way (`rows`) x route  ->  `misleading`, `harmless`

What is true of each is found by perturbing its own tensors, and held against what attnscope says (`truth`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from attnscope.capture import Selection, record
from attnscope.capture.long.run import record_long
from attnscope.results import Certificate
from attnscope.tiles.softmax import Heads, certify_long, rows_of
from attnscope.tiles.tiling import Sizes
from attnscope.verify import certify_heads
from tests.capture.constructed.model import LAYERS, TOKENS, VOCABULARY, Model, Part, Place, model_of

Parts = Mapping[Place, Part | Sequence[Part]]
Head = tuple[int, int, int]  # layer, head, call of the kernel in this layer
LAST = (LAYERS - 1,)
EVERY = ("eager", "fused", "named", "traced", "tiled")
SPREAD = ("fused", "traced", "tiled")
SOME = ("eager", "traced")
OWN = ("eager", "named", "traced", "tiled")  # the kernel is the model's own function


@dataclass(frozen=True, eq=False)
class Construction:
    """`parts` stand in `layers`, the others are plain. `shape` are arguments of `model_of`.

    Of several `texts` the last is asked about; of its tokens the last `padded` are padding. `change` is done
    to the whole model when it is built (another precision, quantised layers): it is no matter of rows, and
    left out of the truth. In `weak` arithmetic not every fault would be seen. The truth of a text that is too
    long to try every row is that of one which is `like` it.
    """

    route: str
    what: str
    parts: Parts
    layers: tuple[int, ...] = LAST
    tokens: int = TOKENS
    texts: int = 1
    padded: int = 0
    shape: Mapping[str, Any] = field(default_factory=dict)
    change: Callable[[Model], object] | None = None
    weak: bool = False
    like: "Construction | None" = None

    @property
    def name(self) -> str:
        return f"{self.route}: {self.what}"

    def built(self, exact: bool = False) -> tuple[Model, dict[str, Tensor]]:
        """The model and its inputs; `exact` in float64."""
        parts = {place: (part,) if callable(part) else tuple(part) for place, part in self.parts.items()}
        model = model_of(self.route, dict.fromkeys(self.layers, parts), **self.shape)
        generator = torch.Generator().manual_seed(self.tokens)
        often = self.tokens // VOCABULARY + 1
        ids = [torch.randperm(VOCABULARY, generator=generator).repeat(often) for _ in range(self.texts)]
        inputs = {"input_ids": torch.stack(ids)[:, : self.tokens].contiguous()}
        if self.padded:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
            inputs["attention_mask"][:, -self.padded :] = 0
        with torch.no_grad():
            model(**inputs)  # parts learn their parameters
            if exact:
                model.double()
            elif self.change is not None:
                self.change(model)
        return model, inputs

    def certificates(self) -> Iterator[tuple[Head, Certificate]]:
        """What attnscope says of every head, several times where a layer attends in blocks."""
        model, inputs = self.built()
        if self.route == "tiled":
            for call in record_long(model, inputs, Selection(row=-1)).calls:
                every = Heads(call, Sizes(16, 11, 11), torch.float32)
                for head in range(call.heads):
                    certificate = certify_long(call, head, rows_of(every.head(head)))
                    yield (call.layer, head, call.call), certificate
            return
        for call in record(model, inputs, Selection(row=-1)).calls:
            for head, certificate in zip(call.weights, certify_heads(call), strict=True):
                yield (call.layer, head, call.call), certificate


def on_routes(what: str, parts: Parts, routes: Iterable[str], **more: Any) -> Iterator[Construction]:
    """The same on each of the routes."""
    for route in routes:
        yield Construction(route, what, parts, **more)


def by_name(made: Iterable[Construction]) -> dict[str, Construction]:
    named: dict[str, Construction] = {}
    for each in made:
        assert named.setdefault(each.name, each) is each, f"there are two of {each.name}"
    return named
