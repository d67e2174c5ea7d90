"""Layers that were run once and are not run again: they return what they returned then.

    first run     layer 0 -> layer 1 -> layer 2 -> ...       each layer's result is kept
    from layer 2  kept    -> kept    -> layer 2 -> ...       for as many copies as the batch has

The model's own code runs from its start all the same, so that masks and positions are made for the batch
that there is; only the forward of layers that had ended before is replaced. What a layer leaves behind
elsewhere than in its result is not seen here: whoever replays holds an untouched entry of the batch against
the first run.

An input of which there is no such run may grow on its way (`growing`): one entry up to a layer, from there on
as many copies. Whoever lets it holds all entries against a batch that had them from the start.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from attnscope.capture.encoded_once import standing_in
from attnscope.model.anatomy.sites import Site, find_sites

Ended = tuple[nn.Module, int]  # a module, and which of its forwards


class Kept:
    """What the layers of a model returned in one run, in the order in which they ended."""

    def __init__(self, model: nn.Module, sites: Sequence[Site]) -> None:
        self.site_of = {site.module: site for site in sites}
        there = [site.path for site in find_sites(model)]
        self.layers = list(dict.fromkeys(item for path in there for item in holding(model, path)))
        self.starts = {
            site.layers[0]: held[0]
            for site in sites
            if len(site.layers) == 1 and (held := holding(model, site.path))
        }
        self.results: dict[Ended, Any] = {}
        self.counts: dict[Ended, Counter[nn.Module]] = {}  # of the layers, as each of them ended
        self.before: dict[int, frozenset[Ended]] = {}
        self.forwards: dict[int, Counter[nn.Module]] = {}  # of the attentions, before each layer
        self._forwards: Counter[nn.Module] = Counter()
        self._ended: Counter[nn.Module] = Counter()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """While open, the one run whose results are kept."""
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
        """While open, what had ended before `layer` began is not run: its result comes `copies` times."""
        ended, forwards = self.before[layer], Counter[nn.Module]()
        with ExitStack() as stack:
            for module in dict.fromkeys(module for module, _ in ended):
                stack.enter_context(standing_in(module, self._answer(module, ended, forwards, copies)))
            yield

    @contextmanager
    def growing(self, layer: int, copies: int) -> Iterator[None]:
        """While open, what `layer` reads becomes as many copies of one entry; beside it masks stay of one.

        `KeyError` where that layer does not stand in a list, or its module is that of other layers too.
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
            for inner, count in self.counts[mine].items():  # layers within it are not run either
                forwards[inner] = max(forwards[inner], count)
            return tree_map_only(Tensor, lambda tensor: _copied(tensor, copies), self.results[mine])

        return forward


def _copied(tensor: Tensor, copies: int) -> Tensor:
    """What is repeated for every entry of a batch of copies, one entry's parts next to each other.

    The batch is the first axis, or the second of a model that has its tokens first.
    """
    repeats = [1] * tensor.ndim
    if repeats:
        repeats[int(tensor.ndim > 2 and tensor.shape[0] != 1 and tensor.shape[1] == 1)] = copies
    return tensor.repeat(repeats) if copies > 1 else tensor.clone()  # as it lay in memory


def holding(model: nn.Module, path: str) -> list[nn.Module]:
    """The entries of lists of modules that the module at `path` stands in."""
    parts = path.split(".")
    ends = [end for end in range(1, len(parts) + 1) if parts[end - 1].isdigit()]
    return [model.get_submodule(".".join(parts[:end])) for end in ends]
