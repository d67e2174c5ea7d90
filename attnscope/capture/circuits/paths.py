"""The direct path from what one head writes to what a later head reads, named norm by norm and read back.
`read_circuits` does it for all heads of a tower in one short run.

What is not on it: whatever other heads and feed-forward parts make of the one on the way, the number by which
a norm divides each token, and offsets. What is: residual additions, the weights of norms, and their taking
away of the mean. The path is what the model's own code does to something that is put in where heads
write (`skeleton`); that it is the norms that were found, one after the other, and nothing else, is read back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import Capture
from attnscope.capture.circuits.factors import Factor, Factors, FactorSeeker
from attnscope.capture.circuits.gains import Gain
from attnscope.capture.circuits.skeleton import Passed, Skeleton, Turn, Walked
from attnscope.capture.routes import Labels, Selection
from attnscope.capture.run import record
from attnscope.capture.running import evaluating, hooked
from attnscope.errors import AttnscopeError, is_out_of_memory, one_line
from attnscope.model.anatomy.sites import Site
from attnscope.reference import exact, widest

_TOLERANCE = 1e-6  # of the largest number: in float64, with room for what a model does in float32
_ROUNDINGS = 2**10  # machine epsilons of the type that the way was run in, where that is coarser
SIDES = ("query", "key", "value")
NO_PATH = "nothing that an earlier head writes comes there"


@dataclass(frozen=True, eq=False)
class Paths:
    """`reader` is the norm before what a layer's queries, keys and values are made of, None for none.

    `way` are the norms between what an earlier layer writes and the reader of a later one, in their order;
    a pair that is not there has no direct path that could be proved, `reasons` say why.
    """

    reader: dict[tuple[int, str], Gain | None]
    way: dict[tuple[int, int, str], tuple[Gain, ...]]
    reasons: dict[tuple[int, int, str], str]


@torch.enable_grad()  # type: ignore[untyped-decorator]
def paths_between(model: nn.Module, inputs: Mapping[str, Any], layers: Sequence[Factors]) -> Paths:
    """The direct paths from every layer to every later one, as far as they can be proved."""
    sides = {(each.layer, side): getattr(each, side) for each in layers for side in SIDES}
    reads = {_turn(factor) for factor in sides.values() if factor is not None}
    try:
        seen = Skeleton(model, inputs, reads).run()
    except Exception as error:
        if isinstance(error, AttnscopeError) or is_out_of_memory(error):
            raise
        why = f"what lies between its heads cannot be followed ({one_line(error)})"
        return Paths({}, {}, {(early.layer, late.layer, side): why for early, late, side in _places(layers)})
    readers = {place: _reader(seen, _turn(factor)) for place, factor in sides.items() if factor is not None}
    way, reasons = dict[tuple[int, int, str], tuple[Gain, ...]](), dict[tuple[int, int, str], str]()
    known: dict[tuple[int, int], tuple[Gain, ...] | str] = {}
    for early, late, side in _places(layers):
        if early.output is None or (factor := sides[late.layer, side]) is None:
            continue
        read = seen.read[_turn(factor)][1]
        if (early.layer, id(read)) not in known:
            reader = readers[late.layer, side]
            known[early.layer, id(read)] = _way(seen, _turn(early.output), read, reader)
        found, place = known[early.layer, id(read)], (early.layer, late.layer, side)
        if isinstance(found, str):
            reasons[place] = found
        else:
            way[place] = found
    return Paths(
        {place: None if each is None else each.gain for place, each in readers.items()}, way, reasons
    )


def _places(layers: Sequence[Factors]) -> Iterator[tuple[Factors, Factors, str]]:
    return (
        (early, late, side)
        for late in layers
        for early in layers
        if early.layer < late.layer
        for side in SIDES
    )


def _turn(factor: Factor | None) -> Turn:
    assert factor is not None, "only of matrices that were found"
    return factor.part, factor.turn


def _reader(seen: Walked, turn: Turn) -> Passed | None:
    """The norm whose result is read there and goes nowhere else, so that it belongs to the reading alone."""
    order, read = seen.read[turn]
    made = [each for each in seen.passed if each.order < order and _equal(each.made, read)]
    return made[-1] if made and not _goes_on(seen, made[-1]) else None


def _goes_on(seen: Walked, passed: Passed) -> bool:
    later = [each.given for each in seen.passed if each.order > passed.order]
    later += [read for order, read in seen.read.values() if order > passed.order]
    later = [each for each in later if each.requires_grad and not _equal(each, passed.made)]
    if not later:
        return False
    there = passed.made.device
    total = torch.stack([(each * _random(each)).sum().to(there) for each in later]).sum()
    (grown,) = torch.autograd.grad(total, passed.made, retain_graph=True, allow_unused=True)
    return grown is not None and bool((grown != 0).any())


def _random(like: Tensor) -> Tensor:
    """Numbers by lot of the same shape, the same every time; torch's own generator stays as it was."""
    random = torch.Generator().manual_seed(1)
    return torch.randn(like.shape, generator=random, dtype=widest(like.device)).to(like.device)


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether they are the same numbers, moved: random ones of the skeleton, which nothing else can equal."""
    same = one.numel() == other.numel()
    return one is other or (same and torch.equal(one.flatten(), other.to(one.device).flatten()))


def _way(seen: Walked, start: Turn, read: Tensor, reader: Passed | None) -> tuple[Gain, ...] | str:
    """The norms on the way, the reader left out; or why these are not all that is there."""
    put = seen.put[start]
    if not read.requires_grad:
        return NO_PATH
    probe = _random(read)
    passed: list[Passed] = []
    with hooked(
        each.made.register_hook(lambda _grown, each=each: passed.append(each))  # type: ignore[no-untyped-call]
        for each in seen.passed
        if each.made.requires_grad
    ):
        (grown,) = torch.autograd.grad((read * probe).sum(), put, retain_graph=True, allow_unused=True)
    if grown is None or not bool((grown != 0).any()):
        return NO_PATH
    passed.sort(key=lambda each: each.order)
    expected = probe
    for each in reversed(passed):
        expected = each.gain.backward(expected)
    if not _parallel(grown, expected):
        return "what lies on the way is more than residuals and norms, or more than one way"
    return tuple(each.gain for each in passed if each is not reader)


def _parallel(grown: Tensor, expected: Tensor) -> bool:
    if grown.numel() != expected.numel() or grown.shape[-1] != expected.shape[-1]:
        return False
    first, second = exact(grown.flatten()), exact(expected.to(grown.device).flatten())
    factor = (first @ second) / (second @ second)
    off = (first - factor * second).abs().max()
    tolerance = max(_TOLERANCE, _ROUNDINGS * torch.finfo(widest(grown.device)).eps)
    return bool(off <= tolerance * (factor * second).abs().max())


@dataclass(frozen=True, eq=False)
class Circuits:
    """The run, the matrices of every layer, and what lies between layers."""

    captured: Capture
    layers: tuple[Factors, ...]
    paths: Paths


def read_circuits(
    model: nn.Module, inputs: Mapping[str, Any], selection: Selection, labels: Labels
) -> Circuits:
    """What makes and reads the attention of `selection`, as far as the run over `inputs` proves it."""
    sought: list[FactorSeeker] = []

    def seek(model: nn.Module, watched: Sequence[Site], wanted: set[int]) -> FactorSeeker:
        sought.append(FactorSeeker(model, [site for site in watched if wanted.intersection(site.layers)]))
        return sought[-1]

    captured = record(model, inputs, selection, labels, seek)
    found = sought[-1].of_layer  # of the way of reading that saw every layer
    layers = tuple(found[layer] for layer in sorted(found))
    with evaluating(model):
        return Circuits(captured, layers, paths_between(model, inputs, layers))
