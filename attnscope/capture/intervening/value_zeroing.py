"""Value zeroing: how far each query's layer output turns without one key's values (Mohebbi et al. 2023).

    kept layers -> layer l, entry j of a batch with the values of key j at zero -> what it returns: stop

The attention is made once more by the model's own kernel (or, where it has none, from the weights that it
made) with these values and the same queries and keys, so that no weight changes. Only the layer in question
runs: those before return what they returned in the plain run, those behind are not begun. An untouched entry
goes along, and each entry is compared with that one: entries of one batch are added alike, if not to the last
bit. Where it strays from the plain run by more than rounding, the batch is run without these savings, and at
last every key alone.

The read-back at the model's next operation does not use what was made here, but output - weight * value in
float64: that holds only where these values were zero at the attention, and no others.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.capture.intervening.changes import Attended, strays
from attnscope.capture.intervening.experiments import TOKENS_AT_ONCE
from attnscope.capture.intervening.passing import Ended, Kept, holding, passing
from attnscope.capture.intervening.read_back import ReadBack
from attnscope.capture.run import Selection, rungs, wanted_layers
from attnscope.capture.running import evaluating, repeated, without_cache
from attnscope.capture.trace.operations import tensors_in
from attnscope.errors import AttnscopeError, InputError, is_out_of_memory
from attnscope.model.anatomy.sites import Site
from attnscope.reference import EXACT, exact

Vectors = Float[Tensor, "entry query hidden"]


class NoLayersError(InputError):
    """Raised for a model whose layers cannot run one by one with other values; the message says why."""


class _Through(Exception):
    """Raised inside the forward pass to end it where the wanted layer has returned."""


@dataclass(eq=False)
class ValueZeroing:
    """Zeroes values of chosen heads in one layer of one model, on one input.

    `lengths` are the keys of each layer. `faithful` says that a layer which is run alone, and whose attention
    is watched, returns what it returned, bit for bit, and that its attention made once more with the same
    values is the model's own within what rounding may come to; `back`, `lost` and `unseen` count attentions
    that were read back as changed, were not, or cannot be. Raises `NoLayersError` where a layer cannot be
    run alone.
    """

    model: nn.Module
    inputs: Mapping[str, Any]
    sites: Sequence[Site]
    layers: Sequence[int]
    lengths: dict[int, int] = field(init=False, default_factory=dict)
    faithful: bool = field(init=False)
    back: int = field(init=False, default=0)
    lost: int = field(init=False, default=0)
    unseen: int = field(init=False, default=0)
    plainness: int = field(init=False, default=0)  # 0 with every saving, 1 without, 2 one by one

    def __post_init__(self) -> None:
        self.inputs = without_cache(self.model, self.inputs)
        self.kept, back = Kept(self.model, self.sites), ReadBack(self.model)

        def look(seen: Attended) -> None:
            if seen.place[1] or len(seen.output) != 1:
                raise NoLayersError(f"layer {seen.place[0]} attends several times for one input")
            self.lengths[seen.place[0]] = seen.value.shape[2]
            back.expect(seen, [()])

        listening = passing(self.sites, look, changing=False)
        with evaluating(self.model), listening, self.kept.keeping(), back.watching():
            self.model(**self.inputs)
        self.passes = back.found
        if missing := sorted(set(self.layers) - set(self.lengths)):
            raise NoLayersError(f"layer {missing[0]} made no attention that can be reached")
        self.ends = {layer: self._end(layer) for layer in self.layers}
        results = {layer: self.kept.results[self.ends[layer]] for layer in self.layers}
        self.plain = {layer: _by_entry(_vectors(each), each) for layer, each in results.items()}
        self.faithful = all(self._is_faithful(layer) for layer in self.layers)

    def distances(
        self, layer: int, heads: Sequence[int], keys: Sequence[int] | None = None
    ) -> Float[Tensor, "query key"]:
        """Cosine distance of each query's vector after `layer` with and without the values of each key.

        The zeroed values are those that `heads` read; distances are float64, 0 to 2. Keys that are not among
        `keys` have distance 0.
        """
        wanted = list(range(self.lengths[layer]) if keys is None else keys)
        found = torch.zeros(self.plain[layer].shape[1], self.lengths[layer], dtype=EXACT)
        for several in self._batches(layer, wanted):
            found[:, several] = self._together(layer, heads, several).T
        return found

    def _batches(self, layer: int, keys: Sequence[int]) -> Iterator[list[int]]:
        longest = max(self.lengths[layer], self.plain[layer].shape[1])
        size = max(TOKENS_AT_ONCE // longest - 1, 1)
        yield from (list(keys[start : start + size]) for start in range(0, len(keys), size))

    def _together(self, layer: int, heads: Sequence[int], keys: list[int]) -> Float[Tensor, "key query"]:
        """Distances of one batch of keys behind an untouched entry; where that fails, one by one."""
        while self.plainness < 2:
            try:
                made, back = self._run(layer, heads, [None, *keys], saving=self.plainness == 0)
            except AttnscopeError:
                raise
            except Exception as error:
                if is_out_of_memory(error) and len(keys) > 1:
                    half = len(keys) // 2
                    parts = [self._together(layer, heads, each) for each in (keys[:half], keys[half:])]
                    return torch.cat(parts)
            else:
                if made.shape[1:] == self.plain[layer].shape[1:] and not strays(made[:1], self.plain[layer]):
                    self._count(back)
                    return turned(made[:1], made[1:])
            self.plainness += 1
        return torch.cat([self._alone(layer, heads, key) for key in keys])

    def _alone(self, layer: int, heads: Sequence[int], key: int) -> Float[Tensor, "key query"]:
        made, back = self._run(layer, heads, [key], saving=False)
        self._count(back)
        return turned(self.plain[layer], made)

    def _is_faithful(self, layer: int) -> bool:
        """Whether the layer returns the same with its attention's own output put back, also computed anew.

        What is put back are the same numbers in the same places, so that the layer does the same once more:
        there equal bits are asked. The output computed anew may come from another product.
        """
        near: list[bool] = []

        def put_back(seen: Attended) -> Tensor:
            near.append(_is_near(_remade(seen, [None]), seen))
            return seen.output.clone()

        made = self._ended_with(layer, 1, put_back, saving=True)
        return all(near) and torch.equal(made, self.plain[layer])

    def _run(
        self, layer: int, heads: Sequence[int], keys: Sequence[int | None], *, saving: bool
    ) -> tuple[Vectors, ReadBack]:
        """The layer's vectors with one key's values at zero in each entry (None: no key's); the read-back."""
        back, chosen = ReadBack(self.model), list(heads)

        def zeroed(seen: Attended) -> Tensor:
            new = seen.output.clone()
            new[:, chosen] = _remade(seen, keys)[:, chosen]
            if expected := _expected(seen, heads, keys):
                back.expect_near(seen.place, *expected, control=len(keys) > 1)
            return new

        with back.watching():
            return self._ended_with(layer, len(keys), zeroed, saving=saving), back

    def _ended_with(
        self, layer: int, copies: int, answer: Callable[[Attended], Tensor], *, saving: bool
    ) -> Vectors:
        def handle(seen: Attended) -> Tensor | None:
            return answer(seen) if seen.place[0] == layer else None

        begun = self.kept.forwards[layer] if saving else None
        touched = [site for site in self.sites if layer in site.layers]
        ended: list[Any] = []
        replayed = self.kept.replayed(layer, copies) if saving else nullcontext()
        changed = passing(touched, handle, changing=True, begun=begun)
        with evaluating(self.model), replayed, changed, self._stop(layer, ended), suppress(_Through):
            self.model(**repeated(self.inputs, copies))
        return _by_entry(_vectors(ended[0]), self.kept.results[self.ends[layer]])

    def _stop(self, layer: int, ended: list[Any]) -> Any:
        """A hook that keeps the layer's result in `ended` and ends the run."""
        module, number = self.ends[layer]
        forwards = Counter[nn.Module]()

        def end(_module: nn.Module, _inputs: Any, output: Any) -> None:
            forwards[module] += 1
            if forwards[module] == number + 1:
                ended.append(output)
                raise _Through

        return module.register_forward_hook(end)

    def _end(self, layer: int) -> Ended:
        site = next(site for site in self.sites if layer in site.layers)
        before = Counter(module for module, _ in self.kept.before[layer])
        later = [self.kept.before[each] for each in self.lengths if each > layer]
        for module in holding(self.model, site.path):
            end = module, before[module]
            inside = set(module.modules())
            alone = sum(each.module in inside for each in self.sites) == 1
            if alone and end in self.kept.results and all(end in each for each in later):
                return end
        raise NoLayersError(f"layer {layer} is no module that returns the vectors of the next")

    def _count(self, back: ReadBack) -> None:
        found, lost, unseen = back.counts(self.passes)
        self.back, self.lost = self.back + found, self.lost + lost
        self.unseen += unseen + (not back.seen)


def turned(before: Float[Tensor, "#entry query hidden"], after: Vectors) -> Float[Tensor, "entry query"]:
    """Cosine distance of two vectors, computed from their difference to avoid the rounding of 1 - cosine."""
    one, other = (nn.functional.normalize(exact(each), dim=-1).cpu() for each in (before, after))
    return (one - other).square().sum(-1) / 2


def value_zeroing_on(model: nn.Module, inputs: Mapping[str, Any], selection: Selection) -> ValueZeroing:
    """Value zeroing in the selected layers, by the first route on which each of them is seen.

    Raises `InputError` where there is no such attention, or none whose values can be reached.
    """
    refused: InputError | None = None
    for rung in rungs(model, selection):
        try:
            return ValueZeroing(
                model, inputs, rung.watched, sorted(wanted_layers(rung.tower, selection.layers))
            )
        except NoLayersError as error:
            refused = error
    assert refused is not None, "there is always one rung"
    raise refused


def _remade(seen: Attended, keys: Sequence[int | None]) -> Tensor:
    if len(seen.value) != len(keys):
        raise NoLayersError(f"layer {seen.place[0]} attends several times for one input")
    return seen.with_values(_zeroed(seen.value, keys))


def _zeroed(values: Tensor, keys: Sequence[int | None]) -> Tensor:
    values = values.clone()
    for entry, key in enumerate(keys):
        if key is not None:
            values[entry, :, key] = 0
    return values


def _is_near(remade: Tensor, seen: Attended) -> bool:
    return float((remade - seen.output).abs().max()) <= seen.rounding * float(seen.value.abs().max())


def _expected(
    seen: Attended, heads: Sequence[int], keys: Sequence[int | None]
) -> tuple[Tensor, Tensor] | None:
    """Rows of features output - weight * value, and the tolerance for rounding.

    None where nothing is zeroed, or where it is less than rounding: there is nothing to be seen then.
    """
    zeroed = [(entry, key) for entry, key in enumerate(keys) if key is not None]
    if not zeroed:
        return None
    rows, off, moved = exact(seen.output.detach()), exact(torch.zeros_like(seen.output)), False
    weights = seen.weights().detach()
    rows = rows.clone()
    for head in heads:
        values = exact(seen.values_of(head).detach())
        for entry, key in zeroed:
            change = exact(weights[entry, head, :, key])[:, None] * values[entry, key]
            rows[entry, head] -= change
            off[entry, head] = seen.rounding * float(values[entry].abs().max())
            moved = moved or bool((change.abs() > off[entry, head]).any())
    if not moved:
        return None
    return _rows(rows.to(seen.output)), _rows(off.to(seen.output))


def _rows(output: Tensor) -> Tensor:
    """Attention output as `entry part query feature`, its heads side by side."""
    return output.transpose(1, 2).flatten(2)[:, None]


def _vectors(output: Any) -> Tensor:
    for each in tensors_in(output):
        if each.is_floating_point() and each.ndim == 3:
            return each.detach()
    raise NoLayersError("the layers return no vectors")


def _by_entry(vectors: Tensor, plain: Any) -> Vectors:
    """The vectors with the batch axis first; some models have their tokens there."""
    one = _vectors(plain)
    return vectors.transpose(0, 1) if one.shape[0] != 1 and one.shape[1] == 1 else vectors
