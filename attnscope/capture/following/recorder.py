"""Record one forward pass: each attention becomes an `AttentionCall` with its layer, block and tokens.

Inputs and output of an attention are kept for one batch entry, on its device. A kernel's
arguments become terms added to its scores and allowed pairs, by each kernel's convention.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_mask

from attnscope.attention import AttentionCall, Term
from attnscope.capture.arithmetic import precision_of, sums_of
from attnscope.capture.following.describe import Sides
from attnscope.capture.following.projected import OutputProjections
from attnscope.capture.following.takeover import (
    STAND_INS,
    KernelInputs,
    is_foreign,
    kernel_name,
    kernel_weights,
)
from attnscope.capture.running import hooked
from attnscope.capture.trace.tracer import TracedAttention, traced
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site
from attnscope.results import Kind, Route

RELATIVE_POSITION = "relative position"
IN_THE_MASK = "bias in the mask"
_BLENDED = "the values of several tokens are mixed before the weights meet them"


def terms_and_allowed(given: KernelInputs, row: int) -> tuple[tuple[Term, ...], Tensor | None]:
    """Terms added to a kernel's scores, and the pairs it allows (`head-or-1 query key`, None: all)."""
    queries, keys = given.query.shape[2], given.key.shape[2]
    name, mask = kernel_name(given.module), given.mask
    added: dict[str, Tensor] = {}
    allowed = None
    if isinstance(mask, BlockMask):
        allowed = _of_block_mask(mask, given, row)
    elif (mask is None or mask.ndim == 2) and is_foreign(name):
        allowed = _of_foreign(given, row)
    elif name.startswith("flash"):
        allowed = _together(_flagged(given, row))
    elif mask is not None:
        mask = _of_row(mask, row)[..., :keys].expand(-1, queries, -1)
        # eager functions add whatever they are given: a mask of True and False is one of 1 and 0 to them
        bias, allowed = _of_tensor(mask.to(given.query.dtype) if name == "eager" else mask)
        added |= {} if bias is None else {IN_THE_MASK: bias}
    elif name == "sdpa" and queries > 1 and given.is_causal:  # eager without a mask looks everywhere
        allowed = given.query.new_ones(queries, keys, dtype=torch.bool).tril()[None]
    if (bias := given.options.get("position_bias")) is not None:
        added[RELATIVE_POSITION] = _of_row(bias, row).expand(-1, queries, -1)[..., -keys:]
    terms = tuple(Term(name, values.clone()) for name, values in added.items() if values.any())
    return terms, None if allowed is None or allowed.all() else allowed


def _of_row(tensor: Tensor, row: int) -> Tensor:
    return tensor[row if tensor.shape[0] > 1 else 0].detach()


def _of_tensor(mask: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Bias and allowed pairs of a mask: numbers below half the lowest forbid, the rest is a learned bias."""
    if mask.dtype == torch.bool:
        return None, mask.clone()
    allowed = mask > torch.finfo(mask.dtype).min / 2
    return torch.where(allowed, mask, 0), allowed


def _of_block_mask(mask: BlockMask, given: KernelInputs, row: int) -> Tensor:
    queries, keys = given.query.shape[2], given.key.shape[2]
    asked: Any = create_mask(mask.mask_mod, mask.shape[0], mask.shape[1], queries, keys, given.query.device)
    return _of_row(asked, row)


def _of_foreign(given: KernelInputs, row: int) -> Tensor | None:
    """Allowed pairs of a kernel of unknown conventions that was handed no mask for every pair.

    It may ignore some of its options: only rules that its own weights obey are taken over. Whether it then
    computes what we do is the certificate's business.
    """
    seen = (kernel_weights(given, row) != 0).any(0)
    return _together([rule for rule in _flagged(given, row) if not (seen & ~rule).any()])


def _together(rules: list[Tensor]) -> Tensor | None:
    return torch.stack(rules).all(0)[None] if rules else None


def _flagged(given: KernelInputs, row: int) -> list[Tensor]:
    """Masks `query key` of the rules that a kernel gets as options: causality, a window, and the padding.

    They are aligned to the last query and key; a window of w reaches w - 1 tokens back,
    and as far ahead where the kernel is not causal. Padding is a row of 0 and 1.
    """
    queries, keys = given.query.shape[2], given.key.shape[2]
    to, by = (torch.arange(length, device=given.query.device) for length in (keys, queries))
    ahead = to[None, :] - by[:, None] - (keys - queries)
    window, mask = given.options.get("sliding_window"), given.mask
    rules = []
    if causal := queries > 1 and given.is_causal:
        rules.append(ahead <= 0)
    if window is not None and keys > window:
        rules.append((-ahead if causal else ahead.abs()) < window)
    if mask is not None:
        there = mask[row if len(mask) > 1 else 0].detach().bool()[None, -keys:]
        rules.append(there.expand(queries, -1))
    return rules


@dataclass(frozen=True, eq=False)
class KernelCall:
    """One kernel call: its inputs, output and weights, and the key before its rotation, if seen."""

    given: KernelInputs
    output: Tensor
    weights: Tensor | None
    unrotated: Tensor | None

    @property
    def entries(self) -> int:
        """Number of batch entries."""
        return self.given.query.shape[0]


def of_kernel(seen: KernelCall, entry: int, *, heads: Sequence[int] | None, **place: Any) -> AttentionCall:
    """`AttentionCall` of one batch entry, with the model's own weights for `heads`; `place`: more fields."""
    terms, allowed = terms_and_allowed(seen.given, entry)
    fields = kernel_fields(seen, entry)
    # a sink that a kernel applies after its softmax is missing in the weights that it returns
    returned = seen.weights if fields["sinks"] is None and _are_weights(seen) else None
    weights = kernel_weights(seen.given, entry) if returned is None else returned[entry]
    own = of_heads(weights, heads)
    return AttentionCall(terms=terms, allowed=allowed, weights=own, **fields, **place)


def kernel_fields(seen: KernelCall, entry: int) -> dict[str, Any]:
    """Fields of an `AttentionCall` that need no matrix of queries by keys."""
    given = seen.given
    epsilon, precision = precision_of(given.query, seen.output)
    scale = given.options.get("scaling")
    return {
        "q": kept(given.query[entry]),
        "k": kept(given.key[entry]),
        "v": kept(given.value[entry]),
        "scale": given.query.shape[-1] ** -0.5 if scale is None else float(scale),
        "softcap": given.options.get("softcap"),
        "sinks": _sinks(given, entry),
        "window": given.options.get("sliding_window"),
        "output": kept(seen.output[entry].transpose(0, 1)),
        "epsilon": epsilon,
        "precision": precision,
        "sums": sums_of(given.query, seen.output),
        "unrotated_k": _unrotated(seen, entry),
        "reach": {},
    }


def of_trace(
    seen: TracedAttention, entry: int, *, heads: Sequence[int] | None, **place: Any
) -> AttentionCall:
    """`AttentionCall` of one batch entry of a traced attention, with the model's own weights for `heads`."""
    epsilon, precision = precision_of(seen.query, seen.output)
    shape = (*seen.query.shape[:3], seen.key.shape[2])
    remainder = None if seen.remainder is None else _one(seen.remainder, entry, shape)
    allowed = None if seen.allowed is None else _one(seen.allowed, entry, shape)
    return AttentionCall(
        q=kept(seen.query[entry]),
        k=kept(seen.key[entry]),
        v=kept(seen.value[entry]),
        scale=seen.scale,
        softcap=seen.softcap,
        terms=tuple(Term(name, _one(values, entry, shape)) for name, values in seen.terms),
        allowed=None if allowed is None or allowed.all() else allowed,
        sinks=None,
        window=None,
        output=kept(seen.output[entry]),
        weights=of_heads(seen.weights[entry], heads),
        epsilon=epsilon,
        precision=precision,
        sums=sums_of(seen.query, seen.output),
        remainder=remainder,
        reweighted=None if seen.reweighted is None else of_heads(seen.reweighted[entry], heads),
        reservation=_BLENDED if seen.blended else "",
        reach={},
        **place | {"route": Route.TRACED},
    )


def kept(tensor: Tensor) -> Tensor:
    """A detached copy, which later in-place work of the model cannot reach."""
    return tensor.detach().clone()


def of_heads(weights: Tensor, heads: Sequence[int] | None) -> dict[int, Tensor]:
    """The weights `head query key` of the chosen heads, by head."""
    chosen = range(len(weights)) if heads is None else [_chosen_head(head, len(weights)) for head in heads]
    return {head: kept(weights[head]) for head in chosen}


def _chosen_head(head: int, count: int) -> int:
    if not -count <= head < count:
        raise InputError(f"no head {head}: heads are 0-{count - 1}")
    return head % count


def _are_weights(seen: KernelCall) -> bool:
    """Whether a kernel's second result is weights: flex attention returns something else there."""
    lengths = (seen.given.query.shape[2], seen.given.key.shape[2])
    return seen.weights is not None and seen.weights.ndim == 4 and seen.weights.shape[2:] == lengths


def _one(tensor: Tensor, entry: int, shape: Sequence[int]) -> Tensor:
    """One batch entry of a tensor that broadcasts over scores of `shape`, query and key axes written out."""
    full = tensor.reshape((1,) * (4 - tensor.ndim) + tuple(tensor.shape))
    one = full[entry if full.shape[0] > 1 else 0]
    return kept(one.expand(-1, shape[2], shape[3]))


def _sinks(given: KernelInputs, entry: int) -> Tensor | None:
    """Sink logit of each head, or of each head and query, under either name that models use; None without."""
    if (by_head := given.options.get("s_aux")) is not None:
        return kept(by_head.flatten())
    by_query = given.options.get("sinks")
    return None if by_query is None else kept(by_query[entry if len(by_query) > 1 else 0, :, :, 0])


def _unrotated(seen: KernelCall, entry: int) -> Tensor | None:
    """The key before its rotary position as `kv_head key dim`; None if no projection showed it like that."""
    if seen.unrotated is None or seen.unrotated.shape[0] != seen.entries:
        return None
    return as_keys(seen.unrotated[entry].detach(), seen.given.key[entry].detach())


def as_keys(before: Tensor, rotated: Tensor) -> Tensor | None:
    """A projection's output for one input, in the shape of its `rotated` keys; None where it does not fit."""
    key_heads, keys, dim = rotated.shape
    candidates = [before] if before.shape == rotated.shape else []
    if before.numel() == rotated.numel() and before.shape[0] == keys:
        candidates.append(before.reshape(keys, key_heads, dim).transpose(0, 1))
    # as many tokens as key heads: both fit; a rotation keeps every length, the wrong order does not
    lengths = rotated.norm(dim=-1)
    candidates.sort(key=lambda each: float((each.norm(dim=-1) - lengths).abs().max()))
    return candidates[0].clone() if candidates else None


def of_kind_seen(call: AttentionCall, module: nn.Module) -> AttentionCall:
    """The call as a decoder's, where `module` states no kind and no query looks ahead; else unchanged.

    Modules of transformers state their kind; CLIP's text encoder is one though its mask is causal. Of code
    that a model brings along nothing is known: there one in which no query ever looks ahead is a decoder's.
    """
    stated = type(module).__module__.startswith("transformers.") or hasattr(module, "is_causal")
    guessed = call.kind is Kind.ENCODER and not stated
    return replace(call, kind=Kind.DECODER) if guessed and looks_back_only(call) else call


def looks_back_only(call: AttentionCall) -> bool:
    """Whether no query of any head may look at a later position, and some may look at an earlier one."""
    if call.allowed is None or call.allowed.shape[-1] != call.allowed.shape[-2]:
        return False
    behind = torch.ones_like(call.allowed).tril(-1)
    ahead = behind.transpose(-1, -2)
    return bool((call.allowed & behind).any()) and not bool((call.allowed & ahead).any())


Keep = Callable[[AttentionCall], None]
Where = Callable[[torch.device], torch.device]  # attention's device -> its call's device


def processor(_device: torch.device) -> torch.device:
    """The CPU: by default, calls are kept there, whatever device their layer is on."""
    return torch.device("cpu")


@dataclass(eq=False)
class _Seen:
    source: object
    calls: list[AttentionCall]


class _Enough(Exception):
    """Raised inside the forward pass to end it once all wanted layers are recorded."""


class Recorder:
    """Turns the attentions of one forward pass into `AttentionCall`s; counts calls, names layers and blocks.

    Calls are kept on the processor, since layers may lie on several devices and be asked about together;
    a caller that looks at one call after the other may say `where` else.
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
        # calls of the modules that are running
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
        """Record one forward pass, and end it after the last of these layers."""
        left = set(layers)

        def after(layer: int) -> None:
            left.discard(layer)
            if not left:
                raise _Enough

        with suppress(_Enough), self.watching(after):
            yield

    @contextmanager
    def _counting(self, after: Callable[[int], None]) -> Iterator[None]:
        """Count the forwards of every watched module, and call `after` with each layer that is through."""

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
        """The layer that a module serves now: its only one, or of several the next in turn."""
        number = self.entered[site.module]
        if 1 < len(site.layers) <= number:
            raise InputError(f"{site.path} runs more often than it has layers: which is which cannot be told")
        return site.layer_of(number)

    def flush(self) -> None:
        """Keep what was recorded in modules that never came to an end."""
        for module in list(self.waiting):
            self._hand_on(module, self._layer(self.site_of[module]))

    def restart(self) -> None:
        """Reset all counters before another forward pass."""
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
                call=0,  # set when the module ends
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
        """The batch entries that belong to the wanted row: several where a layer cuts its input into windows.

        All entries where no row is chosen, or where they are no multiple of the input's rows.
        """
        each, rest = divmod(entries, self.batch)
        if self.row is None or rest or each == 0:
            return range(entries)
        return range(self.row * each, (self.row + 1) * each)


@contextmanager
def unrotated_keys(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """While open, holds per attention module the last output of its `k_norm`, or else `k_proj`.

    That is its key before the rotary position. It serves one check only: the certificate leaves the rotation
    out on purpose, and must fail then.
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
