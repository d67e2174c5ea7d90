"""Running a model over a long text to the last layer that is needed, nothing of queries by keys held."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from attnscope.attention import AttentionCall, Capture
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import Rows, Standings, standings_of
from attnscope.capture.following.call import KernelCall
from attnscope.capture.following.describe import Sides, as_read, sides_of, tokens_of
from attnscope.capture.following.projected import projections_of
from attnscope.capture.following.recorder import Keep, Recorder
from attnscope.capture.following.takeover import KernelInputs
from attnscope.capture.long.call import long_call
from attnscope.capture.long.chunked import Chunks, without_squares
from attnscope.capture.routes import (
    Labels,
    Rung,
    Selection,
    missing_layers,
    nothing_seen,
    rungs,
    wanted_layers,
)
from attnscope.capture.run import batch_size, chosen_row
from attnscope.capture.running import evaluating, without_cache
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.results import Route

TRIED = 512  # tokens of the beginning that are exchanged to see where each of them goes
_RUNS = 14  # that tell as many apart


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
    """Hands on the first attention of every layer; in the last one the kernel need not answer.

    Unless the model goes `on` behind it.
    """

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
    """As `attnscope.capture.run.record`, of a text that is too long for queries by keys.

    The calls are `LongCall`s. `InputError` for a model whose attention does not ask transformers for its
    kernel: such code makes its squares itself.
    """
    row = chosen_row(selection.row, inputs)
    tokens = labels.tokens or tokens_of(inputs, row, labels.texts)
    rung = next(rungs(model, selection))
    _check_route(rung, model)
    wanted = wanted_layers(rung.tower, selection.layers)
    sides = sides_of(model, inputs, tokens, labels.target, row)
    called = without_cache(model, inputs)
    modules = [site.module for site in find_sites(model) if site.route is Route.TAKEOVER]
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
    """Hands the first attention of each layer to `keep`, in a run over one long text that holds none of them.

    They are `LongCall`s without a sample. Nothing of them is proved, as it is in `record_long`. With the last
    one the run ends, without its output, unless somebody wants what the model says at its `end`.
    """
    rung = next(rungs(model, selection))
    _check_route(rung, model)
    wanted = wanted_layers(rung.tower, selection.layers)
    sides = sides_of(model, inputs, labels.tokens, labels.target, selection.row)
    called, batch = without_cache(model, inputs), batch_size(inputs)
    modules = [site.module for site in find_sites(model) if site.route is Route.TAKEOVER]
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
    """Whether row i is token i, tried on the beginning of the text: order is a matter of code."""
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
