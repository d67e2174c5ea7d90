"""Run a model over a long text to the last layer needed, and record its attention as `LongCall`s.

No matrix of queries by keys is held; each call has a sample of its rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture, Term
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import Rows, Standings, standings_of
from attnscope.capture.following.describe import Sides, as_read, sides_of, tokens_of
from attnscope.capture.following.projected import projections_of
from attnscope.capture.following.recorder import (
    IN_THE_MASK,
    RELATIVE_POSITION,
    Keep,
    KernelCall,
    Recorder,
    kept,
    kernel_fields,
)
from attnscope.capture.following.takeover import KernelInputs
from attnscope.capture.long.chunked import (
    Chunks,
    SymbolicMask,
    fused_rows,
    is_causal_unmasked,
    own,
    rows_of,
    without_squares,
)
from attnscope.capture.run import (
    Labels,
    Rung,
    Selection,
    batch_size,
    chosen_row,
    missing_layers,
    nothing_seen,
    rungs,
    wanted_layers,
)
from attnscope.capture.running import evaluating, weights_by_identity, without_cache
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site, every_site
from attnscope.results import Route
from attnscope.tiles.tiling import EVERYWHERE, LongCall, Rule, Sample, Symbolic, Written

_SAMPLED = 2**19  # pairs of queries and keys in a sample, from 16 rows on
TRIED = 512  # tokens of the beginning that are exchanged to see where each of them goes
_RUNS = 14  # runs that tell these apart


def long_call(
    seen: KernelCall,
    entry: int,
    *,
    heads: Sequence[int] | None,
    rows: Sequence[int] | None,
    by_fused: bool,
    **place: Any,
) -> LongCall:
    """`LongCall` of one batch entry, with the kernel's own weights of `heads` in the sampled rows.

    `rows` are those of the sample (None: some are drawn). With no rows the kernel is not asked again.
    """
    given = seen.given
    terms, rule = _terms_and_rule(given, entry)
    sample = sample_rows(given.query.shape[2], given.key.shape[2]) if rows is None else torch.tensor([*rows])
    own = {}
    if len(sample):
        chosen = range(given.query.shape[1]) if heads is None else heads
        own = _own_weights(given, entry, sample.to(given.query.device), chosen, by_fused)
    return LongCall(
        terms=terms,
        allowed=None,
        weights={},
        rule=rule,
        sample=Sample(sample.long(), own),
        **kernel_fields(seen, entry),
        **place,
    )


def sample_rows(queries: int, keys: int) -> Int[Tensor, " row"]:
    """Rows that are certified in full: the first, the last, and others drawn from all with a fixed seed."""
    count = min(queries, max(16, _SAMPLED // max(keys, 1)), 64)
    ends = {0, queries - 1}
    drawn = torch.randperm(queries, generator=torch.Generator().manual_seed(0)).tolist()
    others = [row for row in drawn if row not in ends][: count - len(ends)]
    return torch.tensor(sorted({*ends, *others}))


def _own_weights(
    given: KernelInputs, entry: int, rows: Tensor, heads: Sequence[int], by_fused: bool
) -> dict[int, Tensor]:
    if isinstance(given.mask, SymbolicMask):
        written = given.mask.rows(entry, rows)[None, None]
        some = replace(rows_of(replace(given, mask=None).row(entry), rows), mask=written)
    else:
        some = rows_of(given.row(entry), rows)
    if by_fused:
        few = _of_heads(some, heads)
        weights = weights_by_identity(lambda v: fused_rows(few, v), torch.zeros_like(few.value))
        return {head: kept(weights[0, i]) for i, head in enumerate(heads)}
    some = replace(some, kernel=own(given))
    returned = some.answer()[1]
    if returned is None or some.has_sinks:
        returned = weights_by_identity(some.answer_to, torch.zeros_like(some.value))
    return {head: kept(returned[0, head]) for head in heads}


def _of_heads(some: KernelInputs, heads: Sequence[int]) -> KernelInputs:
    group, mask = some.query.shape[1] // some.key.shape[1], some.mask
    shared = [head // group for head in heads]
    return replace(
        some,
        query=some.query[:, heads],
        key=some.key[:, shared],
        value=some.value[:, shared],
        mask=mask[:, heads] if mask is not None and mask.shape[1] > 1 else mask,
    )


def _terms_and_rule(given: KernelInputs, entry: int) -> tuple[tuple[Term, ...], Rule]:
    terms, rule, mask = [], _unmasked(given), given.mask
    if isinstance(mask, SymbolicMask):
        held, place = mask.rule, entry if mask.shape[0] > 1 else 0
        rule = Symbolic(lambda _head, queries, keys: held.block(place, queries, keys))
    elif mask is not None:
        one = mask[entry if len(mask) > 1 else 0].detach()
        one = one[..., : given.key.shape[2]].expand(-1, given.query.shape[2], -1)
        if one.dtype == torch.bool:
            rule = Written(one)
        else:
            allowed = one > torch.finfo(one.dtype).min / 2
            rule, bias = Written(allowed), torch.where(allowed, one, 0)
            terms += [Term(IN_THE_MASK, bias)] if bias.any() else []
    if (added := given.options.get("position_bias")) is not None:
        values = added[entry if len(added) > 1 else 0].detach()
        values = values.expand(-1, given.query.shape[2], -1)[..., -given.key.shape[2] :]
        terms += [Term(RELATIVE_POSITION, values)] if values.any() else []
    return tuple(terms), rule


def _unmasked(given: KernelInputs) -> Rule:
    if given.mask is not None or not is_causal_unmasked(given):
        return EVERYWHERE
    return Symbolic(lambda _head, queries, keys: keys[None, :] <= queries[:, None])


class _LongRecorder(Recorder):
    chunks: Chunks
    rows: Sequence[int] | None = None

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        before = self.chunks.fused
        output, _ = given.answer()
        seen = KernelCall(given, output, None, self.unrotated.get(given.module))
        lengths = (given.query.shape[0], given.query.shape[2], given.key.shape[2])
        by_fused = self.chunks.fused > before
        make = partial(long_call, seen, heads=self.heads, rows=self.rows, by_fused=by_fused)
        self._record(given, given.module, lengths, make)
        return output, None


class _RowsRecorder(_LongRecorder):
    """Recorder without a sample; the kernel of the last wanted layer outputs zeros unless `on`."""

    rows = ()
    through: set[int]
    on: bool

    def of_kernel(self, given: KernelInputs) -> tuple[Tensor, Tensor | None]:
        assert self.wanted is not None, "some layers are wanted"
        last = self.wanted - self.through == {self._layer(self.site_of[given.module])}
        self.chunks.silent = last and not self.on
        return super().of_kernel(given)


def record_long(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection,
    labels: Labels = Labels(),  # noqa: B008 - frozen
) -> Capture:
    """Like `attnscope.capture.run.record`, for a text that is too long for queries by keys.

    The calls are `LongCall`s. `InputError` for a model whose attention does not ask transformers for its
    kernel: such code makes matrices of queries by keys itself.
    """
    row = chosen_row(selection.row, inputs)
    tokens = labels.tokens or tokens_of(inputs, row, labels.texts)
    rung = next(rungs(model, selection))
    _check_route(rung, model)
    wanted = wanted_layers(rung.tower, selection.layers)
    sides = sides_of(model, inputs, tokens, labels.target, row)
    called = without_cache(model, inputs)
    modules = [site.module for site in every_site(rung.watched) if site.route is Route.TAKEOVER]
    calls: list[AttentionCall] = []

    with without_squares(model, modules) as chunks:
        chunks.silent = True
        standing = standings_of_beginning(model, called, rung.watched, wanted, sides, row)
        begun = {name: _beginning(value, _lengths(sides)) for name, value in called.items()}
        known = standing.placed, standing.disordered
        reaches = reaches_of(model, begun, rung.watched, wanted, *known)
        reaches = replace(reaches, tried=_sampled(_lengths(sides)))
        chunks.silent = False
        seek = selection.projections or selection.circuits
        found = projections_of(model, rung.watched, wanted, selection.circuits) if seek else None
        batch, heads = batch_size(inputs), selection.heads
        where = lambda device: device  # noqa: E731 - tiles are computed where the model is
        recorder = _LongRecorder(rung.watched, wanted, calls.append, sides, heads, row, batch, found, where)
        recorder.chunks, recorder.rows = chunks, selection.queries
        with evaluating(model), recorder.until(wanted):
            model(**called)
    if missing := missing_layers(wanted, calls):
        raise nothing_seen(model, rung.tower, missing)
    calls = [reaches.settled(standing.settled(call if found is None else found.of(call))) for call in calls]
    calls.sort(key=lambda call: (call.layer, call.block))
    read = tokens if labels.read is None else labels.read
    origin = as_read(model, rung.tower, calls, read, labels.source, inputs, row)
    origin = replace(origin, kernel=chunks.kernels)
    return Capture(tuple(calls), len(rung.tower.layers), origin, rung.tower.distinct_name)


def read_calls(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection,
    labels: Labels,
    keep: Keep,
    end: Callable[[Any], object] | None = None,
) -> None:
    """Pass the first attention of each layer to `keep`, in a run over one long text that stores none.

    They are `LongCall`s without a sample. Nothing of them is proved, as it is in `record_long`. The run ends
    with the last one, without its output, unless `end` is given: that gets the model's output.
    """
    rung = next(rungs(model, selection))
    _check_route(rung, model)
    wanted = wanted_layers(rung.tower, selection.layers)
    sides = sides_of(model, inputs, labels.tokens, labels.target, selection.row)
    called, batch = without_cache(model, inputs), batch_size(inputs)
    modules = [site.module for site in every_site(rung.watched) if site.route is Route.TAKEOVER]
    through = set[int]()

    def keep_first(call: AttentionCall) -> None:
        if call.layer not in through:
            through.add(call.layer)
            keep(call)

    where = lambda device: device  # noqa: E731 - as above
    heads, row = selection.heads, selection.row
    recorder = _RowsRecorder(rung.watched, wanted, keep_first, sides, heads, row, batch, None, where)
    recorder.through, recorder.on = through, end is not None
    watching = recorder.until(wanted) if end is None else recorder.watching(lambda _: None)
    with without_squares(model, modules) as recorder.chunks, evaluating(model), watching:
        said = model(**called)
        if end is not None:
            end(said)
    if missing := sorted(wanted - through):
        raise nothing_seen(model, rung.tower, missing)


def standings_of_beginning(
    model: nn.Module,
    inputs: Mapping[str, Any],
    watched: Sequence[Site],
    wanted: set[int],
    sides: Sides,
    row: int = 0,
    rows: Rows | None = None,
) -> Standings:
    """Standings of positions, tested on the beginning of the text: order is a matter of code."""
    lengths = _lengths(sides)
    source, target = (
        None if tokens is None else tokens.only(range(min(len(tokens), TRIED)))
        for tokens in (sides.source, sides.target)
    )
    cut = {name: _beginning(value, lengths) for name, value in inputs.items()}
    tried = replace(sides, source=source, target=target)
    found = standings_of(model, cut, watched, wanted, tried, row, most=_RUNS * TRIED, rows=rows)
    return replace(found, tried=", ".join(filter(None, (_sampled(lengths), found.tried))))


def _lengths(sides: Sides) -> set[int]:
    return {len(tokens) for tokens in (sides.source, sides.target) if tokens is not None}


def _sampled(lengths: set[int]) -> str:
    return f"on the first {TRIED}" if max(lengths, default=0) > TRIED else ""


def _beginning(value: Any, lengths: set[int]) -> Any:
    by_token = isinstance(value, Tensor) and value.ndim == 2 and value.shape[1] in lengths
    return value[:, :TRIED] if by_token else value


def _check_route(rung: Rung, model: nn.Module) -> None:
    if against := next(filter(None, (site.holds_all_pairs for site in rung.watched)), ""):
        raise InputError(
            f"attention of {type(model).__name__} {against}: its own code holds all queries by all keys, and "
            "cannot be read in tiles"
        )
