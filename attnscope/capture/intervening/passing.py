"""Hooks on attentions by layer, and replay of layers that were run once before.

    kernel's output, or the product with the values  ->  handler  ->  the model goes on with its result

Outputs of attentions are looked at, by layer, with what they are made of (`answers_to`), replaced where a
handler asks for it, or something is added to them that tells how a score of the model changes with them
(`slopes`).

    first run     layer 0 -> layer 1 -> layer 2 -> ...       each layer's result is kept
    from layer 2  kept    -> kept    -> layer 2 -> ...       for as many copies as the batch has

The model's own code runs from its start all the same, so that masks and positions are made for the batch
that there is; only the forward of layers that had ended before is replaced. What a layer leaves behind
elsewhere than in its result is not seen here: callers compare an untouched entry of the batch with the
first run. An input of which there is no such run may grow on its way (`growing`): one entry up to a
layer, from there on as many copies. Callers then compare all entries with a batch that had them from the
start.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from attnscope.capture.cause.answers import Answered, Answers, answers
from attnscope.capture.cause.answers import Place as ModulePlace
from attnscope.capture.following.takeover import KernelInputs, kernel_weights
from attnscope.capture.intervening.changes import Attended, Place
from attnscope.capture.running import evaluating, standing_in, without_cache, without_weights
from attnscope.capture.trace.tracer import TracedAttention
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site, every_site

Ended = tuple[nn.Module, int]  # a module, and which of its forwards
# returns the replacement of an output, or None to keep it
Handler = Callable[[Attended], Tensor | None]


class Kept:
    """Results of a model's layers in one run, in the order in which the layers ended."""

    def __init__(self, model: nn.Module, sites: Sequence[Site]) -> None:
        self.site_of = {site.module: site for site in sites}
        there = [site.path for site in every_site(sites)]
        self.layers = list(dict.fromkeys(item for path in there for item in holding(model, path)))
        self.starts = {
            site.layers[0]: held[0]
            for site in sites
            if len(site.layers) == 1 and (held := holding(model, site.path))
        }
        self.results: dict[Ended, Any] = {}
        self.counts: dict[Ended, Counter[nn.Module]] = {}  # of the layers, when each ended
        self.before: dict[int, frozenset[Ended]] = {}
        self.forwards: dict[int, Counter[nn.Module]] = {}  # of the attentions, before each layer
        self._forwards: Counter[nn.Module] = Counter()
        self._ended: Counter[nn.Module] = Counter()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """While open, keep the results of the layers in the one run that is made."""
        with ExitStack() as stack:
            for module in self.site_of:
                stack.enter_context(module.register_forward_pre_hook(self._begin))
                stack.enter_context(module.register_forward_hook(self._through))
            for module in self.layers:
                stack.enter_context(module.register_forward_hook(self._end))
            yield

    def _begin(self, module: nn.Module, _inputs: Any) -> None:
        layer = self.site_of[module].layer_of(self._forwards[module])
        if layer not in self.before:
            self.before[layer], self.forwards[layer] = frozenset(self.results), Counter(self._forwards)

    def _through(self, module: nn.Module, _inputs: Any, _output: Any) -> None:
        self._forwards[module] += 1

    def _end(self, module: nn.Module, _inputs: Any, output: Any) -> None:
        mine = module, self._ended[module]
        self._ended[module] += 1
        self.results[mine] = tree_map_only(Tensor, lambda tensor: tensor.detach().clone(), output)
        self.counts[mine] = Counter(self._ended)

    @contextmanager
    def replayed(self, layer: int, copies: int) -> Iterator[None]:
        """While open, layers that had ended before `layer` return their kept results, in `copies` copies."""
        ended, forwards = self.before[layer], Counter[nn.Module]()
        with ExitStack() as stack:
            for module in dict.fromkeys(module for module, _ in ended):
                stack.enter_context(standing_in(module, self._answer(module, ended, forwards, copies)))
            yield

    @contextmanager
    def growing(self, layer: int, copies: int) -> Iterator[None]:
        """While open, the input of `layer` is repeated to `copies` entries; masks beside it stay of one.

        Raises `KeyError` where that layer stands in no list, or its module is that of other layers too.
        """

        def grow(_module: nn.Module, args: Any, kwargs: Any) -> Any:
            hidden, *others = args or (kwargs.pop("hidden_states"),)
            return (_copied(hidden, copies), *others), kwargs

        with self.starts[layer].register_forward_pre_hook(grow, with_kwargs=True, prepend=True):
            yield

    def _answer(
        self, module: nn.Module, ended: frozenset[Ended], forwards: Counter[nn.Module], copies: int
    ) -> Callable[..., Any]:
        own = module.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            mine = module, forwards[module]
            forwards[module] += 1
            if mine not in ended:
                return own(*args, **kwargs)
            for inner, count in self.counts[mine].items():  # layers inside do not run either
                forwards[inner] = max(forwards[inner], count)
            return tree_map_only(Tensor, lambda tensor: _copied(tensor, copies), self.results[mine])

        return forward


def _copied(tensor: Tensor, copies: int) -> Tensor:
    """The tensor repeated for a batch of copies, one entry's parts next to each other.

    The batch is the first axis, or the second of a model that has its tokens first.
    """
    repeats = [1] * tensor.ndim
    if repeats:
        repeats[int(tensor.ndim > 2 and tensor.shape[0] != 1 and tensor.shape[1] == 1)] = copies
    return tensor.repeat(repeats) if copies > 1 else tensor.clone()  # as it lay in memory


def holding(model: nn.Module, path: str) -> list[nn.Module]:
    """The list entries (`ModuleList`) around the module at `path`, outermost first."""
    parts = path.split(".")
    ends = [end for end in range(1, len(parts) + 1) if parts[end - 1].isdigit()]
    return [model.get_submodule(".".join(parts[:end])) for end in ends]


@contextmanager
def passing(
    sites: Sequence[Site], handle: Handler, *, changing: bool, begun: Mapping[nn.Module, int] | None = None
) -> Iterator["Passage"]:
    """While open, `handle` gets every attention of the sites; if `changing`, its result is the output.

    `begun` counts the forwards of modules that are not run, since their results are known.
    """
    passage = Passage(sites, handle)
    with answers(sites, passage.hand_on, changing=changing, begun=begun) as passage.answers:
        yield passage


class Passage:
    """Counts the attentions of each layer in one forward pass, and passes them to the handler."""

    answers: Answers

    def __init__(self, sites: Sequence[Site], handle: Handler) -> None:
        self.site_of, self.handle = {site.module: site for site in sites}, handle
        self.attentions: Counter[tuple[nn.Module, int]] = Counter()
        self.places: dict[ModulePlace, Place] = {}

    @property
    def none(self) -> set[Place]:
        """Places that turned out to be no attention."""
        return {place for seen, place in self.places.items() if seen in self.answers.none}

    def hand_on(self, seen: Answered) -> Tensor | None:
        module, forward, _number = seen.place
        layer = self.site_of[module].layer_of(forward)
        place = layer, self.attentions[module, layer]
        self.attentions[module, layer] += 1
        self.places[seen.place] = place
        if isinstance(seen.source, KernelInputs):
            return self.handle(_of_kernel(seen.source, place, seen.output, seen.weights))
        return self.handle(_of_trace(seen.source, place, seen.output))


def _of_kernel(given: KernelInputs, place: Place, output: Tensor, weights: Tensor | None) -> Attended:
    @cache
    def seen_weights() -> Tensor:
        return _kernel_weights(given, output, weights)

    def with_inputs(here: slice, there: slice, inputs: str) -> Attended:
        mine, other = given.some(here), given.some(there)
        lent = {name: getattr(other, name) for name in ("query", "key", "value") if name[0] in inputs}
        mixed = replace(mine, **lent)
        made, its_weights = mixed.answer()
        return _of_kernel(mixed, place, made.transpose(1, 2), its_weights)

    made_of = seen_weights, given.value, given.answer_to
    return Attended(place, output, *made_of, given.module, with_inputs, given.has_sinks)


def _of_trace(one: TracedAttention, place: Place, output: Tensor) -> Attended:
    def weights() -> Tensor:
        if one.reweighted is not None or one.blended:
            raise InputError(
                f"layer {place[0]}: the model mixes its weights, or its values, after the softmax, so that "
                "no single link can be cut and no single value zeroed"
            )
        return one.weights

    def answer_to(values: Tensor) -> Tensor:
        met = weights().to(values.dtype)
        return met.matmul(values.repeat_interleave(met.shape[1] // values.shape[1], dim=1))

    def with_inputs(here: slice, there: slice, inputs: str) -> Attended:
        if inputs not in ("v", "qk"):
            raise InputError(
                f"layer {place[0]}: the model makes its scores by itself, so that queries and keys come "
                "together: .qk, .v, or all three"
            )
        scored, given = (here, there) if inputs == "v" else (there, here)
        met, values = weights()[scored], one.value[given]
        output = met.to(values.dtype).matmul(values.repeat_interleave(met.shape[1] // values.shape[1], dim=1))
        return replace(seen, output=output, weights=lambda: met, value=values)

    seen = Attended(place, output, weights, one.value, answer_to, one.module, with_inputs)
    return seen


def _kernel_weights(given: KernelInputs, output: Tensor, weights: Tensor | None) -> Tensor:
    """The weights that the kernel returned; computed from it if there are none, or none without its sink."""
    shape = (*output.shape[:3], given.key.shape[2])
    if weights is not None and not given.has_sinks and weights.shape == shape:
        return weights
    return torch.stack([kernel_weights(given, entry) for entry in range(len(output))])


def answers_to(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site]
) -> tuple[dict[Place, Tensor], Any]:
    """Heads' outputs for `inputs`, by place, `batch head query value_dim`, and the model's own output."""
    found: dict[Place, Tensor] = {}

    def look(seen: Attended) -> None:
        found[seen.place] = seen.output.detach().clone()

    with evaluating(model), passing(sites, look, changing=False) as passage:
        output = model(**without_cache(model, inputs))
    return {place: each for place, each in found.items() if place not in passage.none}, output


@dataclass(frozen=True, eq=False)
class Observed:
    """One attention of a run: its heads' outputs, with the values and weights behind them.

    `weights` are None where the model mixes them, or the values, after the softmax, or nobody asked.
    """

    output: Float[Tensor, "batch head query value_dim"]
    value: Float[Tensor, "batch kv_head key value_dim"]
    weights: Float[Tensor, "batch head query key"] | None = None


@dataclass(frozen=True, eq=False)
class Slopes:
    """Gradients of several scores with respect to every head's output, and these outputs, by place."""

    by_score: tuple[Mapping[Place, Float[Tensor, "batch head query value_dim"]], ...]
    seen: Mapping[Place, Observed]


def gradients(
    model: nn.Module, inputs: Mapping[str, Any], sites: Sequence[Site], score: Callable[[Any], Tensor]
) -> Mapping[Place, Tensor]:
    """Gradient of the model's `score` with respect to every head's output, by place.

    Axes: batch head query value_dim, as those outputs have. One forward and one backward pass; the weights
    get no gradients. `InputError` for a model whose own code keeps gradients from passing.
    """
    return slopes(model, inputs, sites, lambda output: score(output)[None]).by_score[0]


def slopes(
    model: nn.Module,
    inputs: Mapping[str, Any],
    sites: Sequence[Site],
    scores: Callable[[Any], Float[Tensor, " score"]],
    *,
    weights: bool = False,
) -> Slopes:
    """Gradients of several scores: one forward pass, one backward pass each; `weights`: keep these too."""
    probes: dict[Place, Tensor] = {}
    found: dict[Place, Observed] = {}

    def probe(seen: Attended) -> Tensor:
        nothing = torch.zeros_like(seen.output, requires_grad=True)
        probes[seen.place] = nothing
        made = None
        if weights:
            with torch.no_grad(), suppress(InputError):
                made = seen.weights().detach()
        found[seen.place] = Observed(seen.output.detach().clone(), seen.value.detach(), made)
        return seen.output + nothing

    with (
        evaluating(model),
        without_weights(model),
        torch.enable_grad(),
        passing(sites, probe, changing=True) as passage,
    ):
        answers = scores(model(**without_cache(model, inputs)))
        each_alone = list(answers)
    mine = {place: each for place, each in probes.items() if place not in passage.none}
    if not answers.requires_grad:
        raise InputError(
            f"{type(model).__name__} lets no gradients pass: nothing can be foretold of its heads"
        )
    return Slopes(
        tuple(_back(score, mine, number < len(answers) - 1) for number, score in enumerate(each_alone)),
        {place: found[place] for place in mine},
    )


def _back(score: Tensor, probes: Mapping[Place, Tensor], more: bool) -> dict[Place, Tensor]:
    found = torch.autograd.grad(score, list(probes.values()), allow_unused=True, retain_graph=more)
    return {
        place: torch.zeros_like(probe) if each is None else each.detach()
        for (place, probe), each in zip(probes.items(), found, strict=True)
    }
