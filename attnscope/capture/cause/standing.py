"""Test whether position i of a layer stands for token i: exchange tokens, and see which positions change.

    standings = standings_of(model, inputs, rung.watched, layers, sides)
    call = standings.settled(call)

A layer hands its kernel a row of queries and a row of keys, and nothing says that the i-th of them is made
of token i: code may sort its tokens first. Nor that the value which the weight of a key brings is made of the
key's token. So tokens are exchanged for others, a set of them at a time; with all attention muted, the
queries, keys and values that change must be those of the exchanged tokens.
`attnscope.model.media.patches` does the same with the pixels of a picture.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar, cast

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from attnscope.attention import AttentionCall
from attnscope.capture.cause.answers import Sketches
from attnscope.capture.cause.rows import AT_ONCE, Change, Exchanged, apart, exchanged, runs
from attnscope.capture.following.describe import Sides, numbered
from attnscope.capture.following.takeover import STAND_INS, KernelInputs
from attnscope.capture.running import Refused, evaluating, hooked, ours, running_again
from attnscope.capture.trace.operations import operation
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.model.anatomy.sites import Site, every_site
from attnscope.results import Route
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind, Standing

Made = TypeVar("Made")

Make = Callable[[Tensor], Made]
_ATTENDS = ("softmax", "scaled_dot_product_attention")
DISORDERED = "queries and keys are in different orders"
APART = "keys and values are not those of the same tokens"
_IDS = "input_ids", "decoder_input_ids"
# opens hooks that call a function with each layer's number and rows
Rows = Callable[[Callable[[int, Tensor], None]], AbstractContextManager[None]]


class Handed(NamedTuple, Generic[Made]):
    """The query, key and value of one attention, or a result computed from each of them."""

    query: Made
    key: Made
    value: Made


Seen = dict[tuple[nn.Module, int], Handed[Made]]


class _Enough(Exception):
    """Raised inside the forward pass to end it once every wanted module has run often enough."""


def handed_over(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    wanted: Mapping[nn.Module, int],
    make: Make[Made],
) -> Seen[Made]:
    """Apply `make` to the queries, keys and values of a run with attention muted; results by module and call.

    `make` gets each as `batch head position dim` while it passes by, and nothing else is kept. The run ends
    when each of the `wanted` modules has run as often as its count says.

    Raises `Refused` where the model does not run like this.
    """
    seen: Seen[Made] = {}
    with (
        suppress(_Enough),
        evaluating(model),
        running_again(model),
        _muted(model, watched, wanted, seen, make),
    ):
        model(**inputs)
    return seen


@contextmanager
def _muted(
    model: nn.Module,
    watched: Sequence[Site],
    wanted: Mapping[nn.Module, int],
    seen: Seen[Made],
    make: Make[Made],
) -> Iterator[None]:
    """While open, all attention outputs zeros; `make` of wanted queries, keys and values goes to `seen`."""
    calls: Counter[nn.Module] = Counter()
    forwards: Counter[nn.Module] = Counter()

    handed: dict[nn.Module, list[tuple[object, Handed[Made]]]] = defaultdict(list)
    kernels = Kernels()

    @ours
    def keep(one: KernelInputs | TracedAttention) -> None:
        if one.module in wanted:
            made = Handed(*(make(each.detach()) for each in (one.query, one.key, one.value)))
            handed[one.module].append((one, made))

    def of_kernel(given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        keep(given)
        return kernels.answer(given)

    def taken_back(one: TracedAttention) -> None:
        handed[one.module] = [each for each in handed[one.module] if each[0] is not one]

    def leave(module: nn.Module, _inputs: Any, _output: Any) -> None:
        forwards[module] += 1
        for _source, made in handed.pop(module, []):
            seen[module, calls[module]] = made
            calls[module] += 1
        if all(forwards[each] >= times for each, times in wanted.items()):
            raise _Enough

    route_of = {site.module: site.route for site in (*every_site(watched), *watched)}
    by_route = {route: [each for each, its in route_of.items() if its is route] for route in Route}
    with ExitStack() as stack:
        stack.enter_context(Sketches())  # outermost: the tracer sees each operation as it was asked for
        for route, stand_in in STAND_INS.items():
            if by_route[route]:
                stack.enter_context(stand_in(by_route[route], of_kernel))
        if by_route[Route.TRACED]:
            stack.enter_context(_silence(by_route[Route.TRACED]))
            stack.enter_context(traced(by_route[Route.TRACED], keep, taken_back=taken_back))
        for module in wanted:
            stack.enter_context(module.register_forward_hook(leave))
        yield


@contextmanager
def _silence(modules: Iterable[nn.Module]) -> Iterator[None]:
    silence, modules = _Silence(), [*modules]
    entering = (module.register_forward_pre_hook(silence.enter) for module in modules)
    leaving = (module.register_forward_hook(silence.leave, always_call=True) for module in modules)
    with hooked(entering), hooked(leaving), silence:
        yield


class _Silence(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.inside = 0

    def enter(self, _module: nn.Module, _inputs: Any) -> None:
        self.inside += 1

    def leave(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        self.inside -= 1

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        attends = self.inside and isinstance(result, Tensor) and operation(function) in _ATTENDS
        return torch.zeros_like(result) if attends else result


class Unasked(Tensor):
    """Placeholder for attention weights: the kernel computes them as soon as an operation uses them."""

    ask: Callable[[], Tensor]

    @classmethod
    def to_be_asked(cls, ask: Callable[[], Tensor]) -> "Unasked":
        made: Unasked = torch.empty(0).as_subclass(cls)
        made.ask = ask
        return made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        real = tree_map_only(Unasked, lambda each: each.ask(), (args, dict(kwargs or {})))
        return function(*real[0], **real[1])


class Kernels:
    """Stand-in for attention kernels: zeros in the layout of their output, cached by shape."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], tuple[Tensor, bool]] = {}

    def answer(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        """Zeros as the output, and lazily computed weights if the kernel returns any."""
        vectors = (given.query, given.key, given.value)
        shape = type(given.module), given.kernel, *((each.shape, each.dtype) for each in vectors)
        if shape not in self.known:
            self.known[shape] = _zeros_for(given)
        zeros, weighs = self.known[shape]
        return zeros.clone(), Unasked.to_be_asked(lambda: _weights(given)) if weighs else None


def _zeros_for(given: KernelInputs) -> tuple[Tensor, bool]:
    """Zeros for the kernel's output, and whether it returns weights, learnt from two entries of the batch.

    The kernel runs on the whole batch where these alone do not run, or do not show how all are laid out.
    """
    if type(given.mask) in (NoneType, Tensor):  # other masks cannot be cut to some entries
        with suppress(RuntimeError, ValueError, TypeError, LookupError):
            output, weights = given.some(slice(2)).answer()
            if output.is_contiguous() and len(output) == 2:
                return output.new_zeros(len(given.query), *output.shape[1:]), weights is not None
    output, weights = given.answer()
    return torch.zeros_like(output), weights is not None


def _weights(given: KernelInputs) -> Tensor:
    weights = given.answer()[1]
    assert weights is not None, "it returned some for the same shapes"
    return weights


@dataclass(frozen=True)
class CallStanding:
    """Whether the queries, keys and values of one attention stand for the tokens of their positions.

    `apart` says that some key and its value are not of one and the same token.
    """

    query: Standing = Standing.UNKNOWN
    key: Standing = Standing.UNKNOWN
    value: Standing = Standing.UNKNOWN
    apart: bool = False

    @property
    def worst(self) -> Standing:
        return max(self.query, self.key, self.value, key=lambda each: each.rank)


@dataclass(frozen=True, eq=False)
class Standings:
    """Whether the positions of every attention stand for their tokens, by module path and call number.

    `tried` says on which tokens it was tested where not every one was told from every other. `handed_on` is
    the standing of the rows that each layer hands on, where these were asked for.
    """

    found: Mapping[tuple[str, int], CallStanding]
    tried: str = ""
    handed_on: Mapping[int, Standing] = field(default_factory=dict)

    def of(self, module: str, call: int) -> CallStanding:
        """`CallStanding` of one attention; all unknown where it was not seen."""
        return self.found.get((module, call), CallStanding())

    @property
    def disordered(self) -> set[tuple[str, int]]:
        """Path and call number of the attentions whose queries are of other tokens than those in place."""
        return {name for name, one in self.found.items() if one.query is Standing.OTHER}

    @property
    def placed(self) -> set[tuple[str, int]]:
        """Path and call number of the attentions whose queries are of the tokens in their place."""
        return {name for name, one in self.found.items() if one.query is Standing.OWN}

    def settled(self, call: AttentionCall) -> AttentionCall:
        """A copy of the call with its standing; positions of other tokens get numbers as names."""
        one = self.of(call.module, call.call)
        if one.query is Standing.OTHER:
            call = replace(call, query_tokens=numbered(len(call.query_tokens)))
        if Standing.OTHER in (one.key, one.value):
            call = replace(call, key_tokens=numbered(len(call.key_tokens)))
        if one.apart:
            call = replace(call, reservation=call.reservation or APART)
        mixed_up = {one.query, one.key} == {Standing.OWN, Standing.OTHER}
        if mixed_up and call.kind is not Kind.CROSS:
            call = replace(call, reservation=call.reservation or DISORDERED)
        return replace(call, standing=one.worst, tried="" if one.worst is Standing.UNKNOWN else self.tried)


def standings_of(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    layers: Iterable[int] | None,
    sides: Sides,
    row: int = 0,
    most: int | None = AT_ONCE,
    rows: Rows | None = None,
) -> Standings:
    """Test whether positions stand for their tokens, in `watched` modules that serve `layers` (None: all).

    Also tests the `rows` that layers hand on, which are as many as the queries of their modules.

    The model runs once more, on a batch of the text and its changed copies; one by one where its inputs
    cannot be repeated. Of a text for which that is more than `most` tokens in all, some halves are exchanged
    and not each token (None: each, however many). Nothing is known where it does not run on a changed text,
    and of positions that are not named by the tokens of one text.
    """
    serving = None if layers is None else set(layers)
    times = {site.module: often for site in watched if (often := site.runs_for(serving))}
    texts = dict(zip(_IDS, (sides.source, sides.target), strict=True))
    changed = exchanged(inputs, texts, model.config, row, most)
    if not changed or not times:
        return Standings({})
    try:
        seen, moved_rows = _changes(model, runs(inputs, changed, row), watched, times, rows)
    except Refused:
        return Standings({})
    found, site_of = {}, {site.module: site for site in watched}
    for (module, number), handed in seen.items():
        site = site_of[module]
        tokens = sides.of(site.kind, handed.query.positions, handed.key.positions, site.tower)
        convolved = any(isinstance(part, nn.Conv1d) for part in module.modules())
        found[site.path, number] = _judged(handed, tokens, tuple(changed.values()), convolved)
    kinds = {layer: (site.kind, site.tower) for site in watched for layer in site.layers}
    handed_on = {}
    for layer, moved in moved_rows.items():
        kind, tower = kinds[layer]
        own = sides.of(kind, moved.positions, moved.positions, tower)[0]
        handed_on[layer] = moved.stands(_expected(own, tuple(changed.values())))
    halves = max(each.halves for each in changed.values())
    plural = "half" if halves == 1 else "halves"
    return Standings(found, f"on {halves} random {plural} of the text" if halves else "", handed_on)


def _judged(
    handed: Handed[Change], tokens: tuple[Tokens, Tokens], changed: Sequence[Exchanged], convolved: bool
) -> CallStanding:
    """The standing of one attention from the changes of its queries, keys and values; `tokens`: its sides.

    Those of a module that convolves them are mixed by design, however much of them is of which token.
    """
    queries, keys = (_expected(side, changed) for side in tokens)
    words = None if any(each.halves for each in changed) else torch.cat([each.sets for each in changed], 1)
    mixing = None if convolved else words
    return CallStanding(
        handed.query.stands(queries, mixing),
        handed.key.stands(keys, mixing),
        handed.value.together.stands(keys, mixing),  # heads of one key may bring values of several tokens
        apart(handed.key, handed.value, keys, words),
    )


def _changes(
    model: nn.Module,
    inputs: Iterable[Mapping[str, Any]],
    watched: Sequence[Site],
    times: Mapping[nn.Module, int],
    rows: Rows | None,
) -> tuple[Seen[Change], dict[int, Change]]:
    pieces: list[Seen[Tensor]] = []
    kept = defaultdict[int, list[Tensor]](list)
    if rows is not None:
        times = {module: often + 1 for module, often in times.items()}  # the run goes on to its end

    def keep(layer: int, tensor: Tensor) -> None:
        kept[layer].append(tensor.detach().clone().reshape(count, -1, tensor.shape[-1]))

    for each in inputs:
        count = len(next(value for name, value in each.items() if name in _IDS))
        make: Callable[[Tensor], Any] = Change.of if count > 1 else Tensor.clone
        with nullcontext() if rows is None else rows(keep):
            pieces.append(handed_over(model, each, watched, times, make))
    handed_on = {layer: Change.of(torch.cat(each)[:, None]) for layer, each in kept.items()}
    if count > 1:
        return cast("Seen[Change]", pieces[0]), handed_on
    return {place: Handed(*map(Change.of, whole)) for place, whole in _joined(pieces).items()}, handed_on


def _joined(pieces: Sequence[Seen[Tensor]]) -> Seen[Tensor]:
    joined = {}
    for place in pieces[0]:
        handed = [piece[place] for piece in pieces if place in piece]
        shapes = {tuple(each.shape for each in one) for one in handed}
        if len(handed) == len(pieces) and len(shapes) == 1:
            joined[place] = Handed(*map(torch.cat, zip(*handed, strict=True)))
    return joined


def _expected(tokens: Tokens, changed: Iterable[Exchanged]) -> Bool[Tensor, "set position"] | None:
    """Mask of the positions that should change with each set; None if `tokens` is no exchanged text."""
    return next((each.sets for each in changed if each.tokens is tokens), None)
