"""One forward pass, watched: what passes by becomes `AttentionCall`s with their layer, block and tokens."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.following.call import KernelCall, of_kernel, of_kind_seen, of_trace
from attnscope.capture.following.describe import Sides
from attnscope.capture.following.projected import OutputProjections
from attnscope.capture.following.takeover import STAND_INS, KernelInputs
from attnscope.capture.running import hooked
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.results import Route

Keep = Callable[[AttentionCall], None]
Where = Callable[[torch.device], torch.device]  # from the device of an attention to where its call is kept


def processor(_device: torch.device) -> torch.device:
    """Calls come to the processor: a layer's queries, keys and values, and the weights of a few heads."""
    return torch.device("cpu")


@dataclass(eq=False)
class _Seen:
    source: object
    calls: list[AttentionCall]


class _Enough(Exception):
    """Raised inside the forward pass once everything that was asked for has been recorded."""


class Recorder:
    """Makes `AttentionCall`s of what passes by in one forward pass: counts calls, names layers and blocks.

    Calls are kept on the processor, since layers may lie on several devices and be asked about together;
    who looks at one call after the other may say `where` else.
    """

    def __init__(
        self,
        watched: Sequence[Site],
        wanted: set[int] | None,
        keep: Keep,
        sides: Sides,
        heads: Sequence[int] | None,
        row: int | None,
        batch: int,
        projections: OutputProjections | None = None,
        where: Where = processor,
    ) -> None:
        self.where = where
        self.site_of = {site.module: site for site in watched}
        self.wanted, self.keep, self.sides, self.heads = wanted, keep, sides, heads
        self.row, self.batch, self.projections = row, batch, projections
        self.entered: Counter[nn.Module] = Counter()  # forwards of each module
        self.called: Counter[nn.Module] = Counter()  # attentions of each module
        self.blocks: Counter[tuple[nn.Module, int]] = Counter()
        self.unrotated: dict[nn.Module, Tensor] = {}
        # what was seen in the modules that run
        self.waiting: defaultdict[nn.Module, list[_Seen]] = defaultdict(list)
        self.unread: dict[nn.Module, int] = {}

    @contextmanager
    def watching(self, after: Callable[[int], None]) -> Iterator[None]:
        by_route = {route: [s.module for s in self.site_of.values() if s.route is route] for route in Route}
        with ExitStack() as stack:
            self.unrotated = stack.enter_context(unrotated_keys(self.site_of))
            for route, stand_in in STAND_INS.items():
                if by_route[route]:
                    stack.enter_context(stand_in(by_route[route], self.of_kernel))
            if followed := by_route[Route.TRACED]:
                stack.enter_context(traced(followed, self.of_trace, self.of_unread, self.taken_back))
            # after the tracer's own hooks, so that what it leaves unread is known
            if self.projections is not None:
                stack.enter_context(self.projections.watching())
            stack.enter_context(self._counting(after))
            yield
            self.flush()

    @contextmanager
    def until(self, layers: Iterable[int]) -> Iterator[None]:
        """Watches one forward pass, which ends once all of these layers are through."""
        left = set(layers)

        def after(layer: int) -> None:
            left.discard(layer)
            if not left:
                raise _Enough

        with suppress(_Enough), self.watching(after):
            yield

    @contextmanager
    def _counting(self, after: Callable[[int], None]) -> Iterator[None]:
        """Counts the forwards of every watched module and tells `after` when a layer is through."""

        def leave(module: nn.Module, _inputs: Any, _output: Any) -> None:
            layer = self._layer(self.site_of[module])
            self.entered[module] += 1
            self._hand_on(module, layer)
            if self.projections is None:
                after(layer)
            elif module in self.projections.around:
                self.projections.through(module, partial(after, layer))

        with hooked(module.register_forward_hook(leave) for module in self.site_of):
            yield

    def _hand_on(self, module: nn.Module, layer: int) -> None:
        unread = self.unread.pop(module, 0)
        for seen in self.waiting.pop(module, []):
            for call in seen.calls:
                block = self.blocks[module, layer]
                self.blocks[module, layer] += 1
                call = replace(call, call=self.called[module], block=block, unread=unread)
                self.keep(of_kind_seen(call, module))
            self.called[module] += 1
        self.unrotated.pop(module, None)

    def _layer(self, site: Site) -> int:
        """The layer that a module is serving now: one layer always, several each in its turn."""
        number = self.entered[site.module]
        if 1 < len(site.layers) <= number:
            raise InputError(f"{site.path} runs more often than it has layers: which is which cannot be told")
        return site.layer_of(number)

    def flush(self) -> None:
        """Keeps what was seen in modules that never came to an end."""
        for module in list(self.waiting):
            self._hand_on(module, self._layer(self.site_of[module]))

    def restart(self) -> None:
        """Before another forward pass: what was counted in the last one does not count in the next."""
        self.flush()
        for counter in (self.entered, self.called, self.blocks):
            counter.clear()

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        output, weights = given.answer()
        seen = KernelCall(given, output, weights, self.unrotated.get(given.module))
        lengths = (given.query.shape[0], given.query.shape[2], given.key.shape[2])
        self._record(given, given.module, lengths, partial(of_kernel, seen, heads=self.heads))
        return output, weights

    def of_unread(self, module: nn.Module, count: int) -> None:
        self.unread[module] = count

    def of_trace(self, seen: TracedAttention) -> None:
        lengths = (seen.query.shape[0], seen.query.shape[2], seen.key.shape[2])
        self._record(seen, seen.module, lengths, partial(of_trace, seen, heads=self.heads))

    def taken_back(self, seen: TracedAttention) -> None:
        waiting = self.waiting[seen.module]
        waiting[:] = [each for each in waiting if each.source is not seen]

    def _record(
        self,
        source: object,
        module: nn.Module,
        lengths: tuple[int, int, int],
        make: Callable[..., AttentionCall],
    ) -> _Seen:
        site, (entries, queries, keys) = self.site_of[module], lengths
        layer, seen = self._layer(site), _Seen(source, [])
        self.waiting[module].append(seen)
        if self.wanted is not None and layer not in self.wanted:
            return seen
        query_tokens, key_tokens = self.sides.of(site.kind, queries, keys, site.tower)
        made = (
            make(
                entry,
                module=site.path,
                call=0,  # until it is known which others there are
                layer=layer,
                kind=site.kind,
                query_tokens=query_tokens,
                key_tokens=key_tokens,
                route=site.route,
                tower=site.tower,
            )
            for entry in self._mine(entries)
        )
        seen.calls += [call.at(self.where(call.q.device)) for call in made]
        if self.projections is not None:
            self.projections.answered(module, seen.calls)
        return seen

    def _mine(self, entries: int) -> range:
        """The batch entries of the row, or of all (None): several where a layer cuts its input into windows.

        A call with fewer entries than the input has rows holds all of them in one, end to end.
        """
        each, rest = divmod(entries, self.batch)
        if self.row is None or rest or each == 0:
            return range(entries)
        return range(self.row * each, (self.row + 1) * each)


@contextmanager
def unrotated_keys(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """While open, holds per attention module what its `k_norm`, or else its `k_proj`, last returned.

    That is its key before the rotary position. It serves one thing only: the certificate leaves the rotation
    out on purpose and must notice.
    """
    latest: dict[nn.Module, Tensor] = {}
    with ExitStack() as stack:
        for module in modules:
            maker = getattr(module, "k_norm", None) or getattr(module, "k_proj", None)
            if isinstance(maker, nn.Module):
                stack.enter_context(maker.register_forward_hook(_remember(latest, module)))
        yield latest


def _remember(latest: dict[nn.Module, Tensor], module: nn.Module):  # type: ignore[no-untyped-def]
    def hook(_maker: nn.Module, _inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            latest[module] = output

    return hook
