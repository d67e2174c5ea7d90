"""Compare heads of two models of one shape, also with layers of the one fed the inputs of the other's:

so a head that changed itself is told from one that only receives a change made before it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.capture.intervening.changes import Attended
from attnscope.capture.intervening.passing import holding, passing
from attnscope.capture.run import Rung, Selection, nothing_seen, rungs, wanted_layers
from attnscope.capture.running import evaluating, hooked, without_cache


@dataclass(frozen=True, eq=False)
class HeadsSeen:
    """Weights of one attention over one text, and its heads' outputs before the output projection."""

    weights: Float[Tensor, "head query key"]
    output: Float[Tensor, "head query value_dim"]


Seen = Mapping[int, HeadsSeen]  # by layer
Given = tuple[Tensor, ...]  # a layer's inputs `batch token feature`, in order


@dataclass(eq=False)
class Layers:
    """The layers of a model that hold the watched attentions, and the inputs of each of their forwards."""

    modules: Sequence[nn.Module]
    given: dict[tuple[int, int], Given] = field(default_factory=dict)

    @classmethod
    def of(cls, model: nn.Module, rung: Rung) -> "Layers | None":
        """The layers around the watched attentions; None where an attention stands in no list of layers."""
        found = dict[int, nn.Module]()
        for site in rung.watched:
            outer = holding(model, site.path)
            if not outer:
                return None
            inside = set(outer[0].modules())
            module = outer[0] if sum(each.module in inside for each in rung.watched) == 1 else outer[-1]
            found[id(module)] = module
        return cls(list(found.values()))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While open, the inputs of the layers are kept."""
        self.given.clear()
        with self._hooked(lambda place, tensors: self.given.update({place: tuple(map(_kept, tensors))})):
            yield

    @contextmanager
    def reading(self, other: "Layers") -> Iterator[None]:
        """While open, each layer reads the inputs that the same layer of the `other` model got."""

        def put(place: tuple[int, int], tensors: Given) -> Given:
            given = other.given.get(place, ())
            if [each.shape for each in given] != [each.shape for each in tensors]:
                raise LookupError(f"layer number {place[0]} is not called with the same shapes")
            return tuple(new.to(old) for new, old in zip(given, tensors, strict=True))

        with self._hooked(put):
            yield

    @contextmanager
    def _hooked(self, handle: Any) -> Iterator[None]:
        forwards = Counter[int]()

        def hook(number: int) -> Any:
            def before(_: nn.Module, args: Any, kwargs: Any) -> Any:
                place = number, forwards[number]
                forwards[number] += 1
                tensors = tuple(each for each in (*args, *kwargs.values()) if _is_read(each))
                new = handle(place, tensors)
                if new is None:
                    return None
                left = iter(new)
                put = [next(left) if _is_read(each) else each for each in (*args, *kwargs.values())]
                return tuple(put[: len(args)]), dict(zip(kwargs, put[len(args) :], strict=True))

            return before

        with hooked(
            module.register_forward_pre_hook(hook(number), with_kwargs=True)
            for number, module in enumerate(self.modules)
        ):
            yield


def _is_read(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()


def _kept(value: Tensor) -> Tensor:
    return value.detach().clone()


class HeadReader:
    """Reads weights and outputs of the selected heads of one model, text after text, and keeps none."""

    def __init__(self, model: nn.Module, selection: Selection) -> None:
        self.model, self.selection = model, selection
        self.rung: Rung | None = None  # the one that saw all layers
        self.layers: Layers | None = None
        self.returned: Any = None  # the model's output in its last run

    def read(self, inputs: Mapping[str, Any]) -> Seen:
        """Weights and outputs of the chosen heads over a text, by layer; `InputError` for an unseen layer."""
        for rung in rungs(self.model, self.selection) if self.rung is None else (self.rung,):
            layers = Layers.of(self.model, rung) if self.rung is None else self.layers
            with nullcontext() if layers is None else layers.listening():
                seen = self._seen(inputs, rung)
            if not (missing := sorted(wanted_layers(rung.tower, self.selection.layers) - seen.keys())):
                self.rung, self.layers = rung, layers
                return seen
        raise nothing_seen(self.model, rung.tower, missing)

    def read_as(self, inputs: Mapping[str, Any], other: "HeadReader") -> Seen | None:
        """Like `read`, with each layer fed what the `other` model's layer just read; None if impossible."""
        assert self.rung is not None, "it has read the text by itself before"
        if self.layers is None or other.layers is None:
            return None
        try:
            with self.layers.reading(other.layers):
                return self._seen(inputs, self.rung)
        except LookupError:
            return None

    def _seen(self, inputs: Mapping[str, Any], rung: Rung) -> dict[int, HeadsSeen]:
        found: dict[int, HeadsSeen] = {}
        wanted = wanted_layers(rung.tower, self.selection.layers)
        heads = None if self.selection.heads is None else list(self.selection.heads)

        def look(seen: Attended) -> None:
            layer, number = seen.place
            if number == 0 and layer in wanted:
                own = slice(None) if heads is None else heads
                found[layer] = HeadsSeen(
                    seen.weights()[0, own].detach(), seen.output[0, own].detach().clone()
                )

        with torch.no_grad(), evaluating(self.model), passing(rung.watched, look, changing=False) as passage:
            self.returned = self.model(**without_cache(self.model, inputs))
        none = {layer for layer, number in passage.none if number == 0}
        return {layer: found[layer] for layer in sorted(found.keys() - none)}
