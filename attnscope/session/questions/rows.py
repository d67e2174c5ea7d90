"""Long texts: read some rows or tiles of attention where queries x keys do not fit in memory.

Above `LONG` tokens the kernel is torch's fused one wherever the model may run with it and eager was not asked
for by name, whether rows are read or only the model's answer (`fused_where_long`). A row is recomputed from
the model's own query and keys, and checked against the kernel's weights and output for it. Heads are chosen
by cost and read in tiles. Questions that need whole layers hold them, where they fit (`check_whole_fits`).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from attnscope.analysis.controls import ControlTexts
from attnscope.analysis.heads.view import without_padding
from attnscope.analysis.rows import Layer, LayerRows, verdicts_of
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.following.takeover import kernel_name
from attnscope.capture.long.chunked import without_squares
from attnscope.capture.long.run import read_calls, record_long, sample_rows
from attnscope.capture.returned import Returned
from attnscope.capture.run import Selection
from attnscope.capture.running import if_it_runs
from attnscope.errors import DoesNotFitError, InputError
from attnscope.model.anatomy.placed import device_of
from attnscope.model.anatomy.sites import Site
from attnscope.model.loading import memory
from attnscope.results import Provenance, Verdict
from attnscope.results.base.origin import tallied
from attnscope.session.choosing import Chosen
from attnscope.session.questions.exchanging import Exchange
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Route

LONG = 1024  # tokens on either side above which only some rows are read


def may_read_rows(reading: Reading, chosen: Chosen) -> bool:
    """True where the text is long and its rows can be read alone."""
    against = chosen.block or _kernel_stands(reading, chosen.tower.sites) or unreadable(reading, chosen)
    return _is_long(reading, chosen) and not against


@contextmanager
def fused_where_long(reading: Reading) -> Iterator[Callable[[Provenance], Provenance]]:
    """Context manager: a long text runs on torch's fused kernel, a few queries at a time.

    It yields a function that writes the kernel into a provenance. Over a short text, and where another kernel
    was asked for by name, the model runs unchanged.
    """
    module, tokens = reading.model.module, _tokens(reading)
    modules = [site for site in reading.model.sites if site.route is Route.TAKEOVER]
    short = max(map(len, tokens)) <= LONG or reading.captured is not None or reading.asked.sensed
    if short or not modules or _kernel_stands(reading, modules):
        yield lambda origin: origin
        return
    with without_squares(module, [site.module for site in modules]) as chunks:
        yield lambda origin: replace(origin, kernel=chunks.kernels)


def _tokens(reading: Reading) -> list[Tokens]:
    return [reading.encoded.tokens, *([] if reading.target is None else [reading.target.tokens])]


def _is_long(reading: Reading, chosen: Chosen) -> bool:
    cost = cost_of(reading, chosen)
    return max(cost.queries, cost.keys) > LONG


def _kernel_stands(reading: Reading, sites: Sequence[Site]) -> bool:
    """True where the kernel must stay: neither eager nor sdpa, eager by name, or padded tokens."""
    others = {kernel_name(site.module) for site in sites} - {"eager", "sdpa"}
    padded = any(token.padding for tokens in _tokens(reading) for token in tokens.items)
    return bool(others) or reading.model.kernel == "eager" or padded


def layers_of(attention: Capture | Returned, chosen: Chosen) -> tuple[list[Layer], dict[Verdict, int]]:
    """The captured layers without padding, and the number of heads with each verdict."""
    if isinstance(attention, Returned):
        layers: list[Layer] = list(attention.layers)
        return layers, tallied([Verdict.UNCERTIFIED] * len(layers) * len(chosen.heads))
    verdicts, layers = list[Verdict](), list[Layer]()
    for layer in dict.fromkeys(call.layer for call in attention.calls):
        whole = attention.call(layer, block=chosen.block)
        verdicts.extend(verdicts_of(whole, chosen.heads))
        layers.append(without_padding(whole))
    return layers, tallied(verdicts)


def notes_of(attention: Capture | Returned, layers: Sequence[Layer]) -> tuple[str, ...]:
    """Notes on how the layers were read."""
    if isinstance(attention, Returned):
        return (attention.reason,)
    return attention.remarks(layer.layer for layer in layers)


def sample_with(tokens: int, *queries: int) -> tuple[int, ...]:
    """Indices of sampled rows, by which heads are certified, and of `queries`, ascending."""
    return tuple(sorted({*queries, *sample_rows(tokens, tokens).tolist()}))


def controls_by_rows(
    reading: Reading, chosen: Chosen, controls: ControlTexts, exchange: Exchange, queries: Sequence[int]
) -> Iterator[list[LayerRows]]:
    """The rows `queries` of every layer, control by control."""
    for number in range(len(controls)):
        (value,) = exchange.values(controls, slice(number, number + 1))
        yield rows_in(reading, chosen, {**reading.inputs, exchange.name: value}, queries)


def rows_in(
    reading: Reading,
    chosen: Chosen,
    inputs: dict[str, Any],
    queries: Sequence[int],
    end: Callable[[Any], object] | None = None,
) -> list[LayerRows]:
    """The rows `queries` of every layer for `inputs`, without certificates.

    `end` is called with the model's output.
    """
    module, found = reading.model.module, dict[int, LayerRows]()

    def keep(call: AttentionCall) -> None:
        found[call.layer] = LayerRows.of(call, queries)

    with if_it_runs(module, beginning(inputs), reading.model.name):
        read_calls(module, inputs, selection_of(chosen), reading.labels(chosen), keep, end)
    return [found[layer] for layer in sorted(found)]


def check_whole_fits(reading: Reading, chosen: Chosen, what: str) -> None:
    """Raises `DoesNotFitError` where whole layers of a long text do not fit; `what` needs them."""
    room = memory.free(device_of(reading.model.module))
    if not _is_long(reading, chosen) or reading.captured is not None or room is None:
        return
    cost = cost_of(reading, chosen)
    if cost.dense > room:
        asked = " with --attn eager" if reading.model.kernel == "eager" else ""
        raise DoesNotFitError(
            f"{what}{asked} reads whole layers: {cost.queries:,} x {cost.keys:,} pairs take "
            f"{gigabytes(cost.dense)} and {gigabytes(room)} are free: "
            f"about {cost.longest(room, tiled=False):,} tokens fit, or fewer layers at a time (--layer)"
        )


_GIGABYTE = 10**9
WORTH = _GIGABYTE  # bytes of dense attention from which tiles are worth it
_STAGES = 9  # float64 copies of one head that are alive while it is recomputed and certified
_KERNEL = 12  # bytes that an eager kernel takes for a pair in every head: scores, weights and their mask
_RUN = 3 * 10**8  # bytes of torch and the model's code


@dataclass(frozen=True)
class Cost:
    """Memory of a question about `heads` heads in `layers` layers of a model with `width` heads of `dim`.

    `hidden` is the width of the residual stream. With `biased` the model itself makes a queries x keys term.
    """

    queries: int
    keys: int
    layers: int
    heads: int
    width: int
    dim: int
    hidden: int
    biased: bool = False

    @property
    def pairs(self) -> int:
        return self.queries * self.keys

    @property
    def dense(self) -> int:
        """Bytes with all queries by all keys at once."""
        kept = 12 * self.layers * self.heads  # captured weights, and the same in float64
        return self.pairs * (_KERNEL * self.width + kept + 8 * _STAGES) + self._run

    @property
    def tiled(self) -> int:
        """Bytes in tiles: tensors that grow with the text, and the model's own queries x keys terms."""
        length = self.queries + self.keys
        captured = 4 * 4 * self.layers * self.width * self.dim * length // 2
        sample = 4 * 16 * self.keys * self.heads * self.layers
        own = 8 * self.width * self.pairs if self.biased else 0
        return captured + sample + own + self._run

    @property
    def _run(self) -> int:
        return _RUN + 4 * 16 * self.hidden * max(self.queries, self.keys)

    def longest(self, room: int, *, tiled: bool) -> int:
        """About how many tokens fit in `room` bytes."""
        low, high = 1, max(self.queries, self.keys)
        while low < high:
            middle = (low + high + 1) // 2
            share = middle / max(self.queries, self.keys)
            sized = replace(self, queries=math.ceil(self.queries * share), keys=math.ceil(self.keys * share))
            low, high = (
                (middle, high) if (sized.tiled if tiled else sized.dense) <= room else (low, middle - 1)
            )
        return low


def gigabytes(size: float) -> str:
    """`0.4 GB`, `14 GB`, `6,900 GB`: bytes as text."""
    amount = size / _GIGABYTE
    return f"{amount:.1f} GB" if amount < 10 else f"{amount:,.0f} GB"


def in_tiles(reading: Reading, chosen: Chosen, forced: bool | None = None, against: str = "") -> bool:
    """True where the question is answered in tiles; the listener is told of an automatic choice.

    `forced` is the user's choice; `against` names a request that tiles cannot serve. Raises `DoesNotFitError`
    where the remaining way needs more memory than there is.
    """
    cost = cost_of(reading, chosen)
    against = against or unreadable(reading, chosen)
    if forced and against:
        raise InputError(f"--tiled: {against}, which takes all queries by all keys: leave --tiled out")
    worth = cost.dense > WORTH and not against
    tiled = worth if forced is None else forced
    _check_fits(reading, cost, tiled, against)
    size = f"{cost.queries:,} x {cost.keys:,}"
    if tiled and forced is None:
        reading.listener.notice(
            f"{size} pairs of queries and keys take {gigabytes(cost.dense)} at once: computed in tiles, "
            f"about {gigabytes(cost.tiled)} (--dense holds them all)"
        )
    return tiled


def cost_of(reading: Reading, chosen: Chosen) -> Cost:
    """The memory cost of the chosen heads for these inputs."""
    queries, keys = map(len, reading.sides(chosen.kind))
    config, module = reading.model.module.config, reading.model.module
    width = max(chosen.tower.heads[layer] for layer in chosen.layers)
    hidden = int(getattr(config, "hidden_size", None) or 64 * width)
    dim = getattr(config, "head_dim", None) or max(hidden // max(width, 1), 1)
    biased = any(hasattr(part, "relative_attention_bias") for part in module.modules())
    return Cost(queries, keys, len(chosen.layers), len(chosen.heads), width, int(dim), hidden, biased)


def unreadable(reading: Reading, chosen: Chosen) -> str:
    """Why tiles and rows cannot be read for this reading; empty where they can."""
    if reading.captured is not None:
        return "what the model wrote itself was read step by step"
    if reading.asked.sensed:
        return "a picture or a sound is read"
    if chosen.route is not None and chosen.route is not Route.TAKEOVER:
        return f"--route {chosen.route.option} holds them"
    against = next(filter(None, (site.holds_all_pairs for site in chosen.tower.sites)), "")
    return against and f"the model's own code {against}"


def _check_fits(reading: Reading, cost: Cost, tiled: bool, against: str) -> None:
    room = memory.free(device_of(reading.model.module))
    needed = cost.tiled if tiled else cost.dense
    if room is None or needed <= room:
        return
    way = "in tiles" if tiled else "all pairs at once"
    fits = cost.longest(room, tiled=tiled)
    instead = f"about {fits:,} tokens fit"
    if tiled and cost.layers > 1:
        instead += ", or fewer layers at a time"
    elif not tiled and against:
        instead += f" ({against}: tiles, which need {gigabytes(cost.tiled)}, are not possible)"
    elif not tiled:
        instead += f", and in tiles all of them in {gigabytes(cost.tiled)}: leave --dense out"
    raise DoesNotFitError(
        f"{cost.queries:,} x {cost.keys:,} pairs, {way}, take {gigabytes(needed)} and "
        f"{gigabytes(room)} are free: {instead}"
    )


def captured_long(
    reading: Reading, chosen: Chosen, *, projections: bool = False, queries: Sequence[int] | None = None
) -> Capture:
    """The chosen attention without queries x keys tensors but for the rows `queries` (None: a sample)."""
    selection = replace(selection_of(chosen), heads=chosen.heads, projections=projections, queries=queries)
    with if_it_runs(reading.model.module, beginning(reading.inputs), reading.model.name):
        return record_long(reading.model.module, reading.inputs, selection, reading.labels(chosen))


def attention_of(reading: Reading, chosen: Chosen, queries: Sequence[int] | None) -> Capture | Returned:
    """The chosen attention with output projections; of a long text only the rows `queries`."""
    with reading.listener.working("reading the attention"):
        if queries is None:
            return reading.attention(chosen, projections=True)
        return captured_long(reading, chosen, projections=True, queries=queries)


def selection_of(chosen: Chosen) -> Selection:
    """A `Selection` of all heads of the chosen layers."""
    return Selection(layers=chosen.layers, kind=chosen.kind, tower=chosen.tower.pattern)


def beginning(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs cut to their first 16 tokens, to try whether the model runs."""
    return {
        name: value[:, :16] if getattr(value, "ndim", 0) == 2 else value for name, value in inputs.items()
    }
