"""Some rows of a long text: nothing of queries by keys is held, of the text or of its controls.

Above `LONG` tokens the kernel is torch's fused one wherever the model may run with it and eager was not asked
for by name, whether rows are read or only what the model answers (`fused_where_long`). A row is recomputed
from the model's own query and keys, and held against the weights and the output that the kernel had for it.
Who needs whole layers holds them, where they fit (`check_whole_fits`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from attnscope.analysis.controls import ControlTexts
from attnscope.analysis.heads.view import without_padding
from attnscope.analysis.rows import Layer, LayerRows, verdicts_of
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.following.takeover import kernel_name
from attnscope.capture.long.chunked import without_squares
from attnscope.capture.long.run import read_calls, sample_rows
from attnscope.capture.returned import Returned
from attnscope.capture.running import if_it_runs
from attnscope.errors import DoesNotFitError
from attnscope.model.anatomy.placed import device_of
from attnscope.model.anatomy.sites import Site, find_sites
from attnscope.model.loading import memory
from attnscope.results import Provenance, Verdict
from attnscope.results.base.origin import tallied
from attnscope.session.choosing import Chosen
from attnscope.session.questions.exchanging import Exchange
from attnscope.session.questions.long import beginning, cost_of, gigabytes, selection_of, unreadable
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Route

LONG = 1024  # tokens on either side above which some rows are read alone


def may_read_rows(reading: Reading, chosen: Chosen) -> bool:
    """Whether the text is long, and its rows can be read alone."""
    against = chosen.block or _kernel_stands(reading, chosen.tower.sites) or unreadable(reading, chosen)
    return _is_long(reading, chosen) and not against


@contextmanager
def fused_where_long(reading: Reading) -> Iterator[Callable[[Provenance], Provenance]]:
    """While open, a model runs over a long text on torch's fused kernel, a few queries at a time.

    Handed on is what tells a provenance of that. Over a short text, and where another kernel was asked for
    by name, the model runs as it is.
    """
    module, tokens = reading.model.module, _tokens(reading)
    modules = [site for site in find_sites(module) if site.route is Route.TAKEOVER]
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
    """Whether the kernel has to stay: neither eager nor sdpa, eager by name, or some token is padding."""
    others = {kernel_name(site.module) for site in sites} - {"eager", "sdpa"}
    padded = any(token.padding for tokens in _tokens(reading) for token in tokens.items)
    return bool(others) or reading.model.kernel == "eager" or padded


def layers_of(attention: Capture | Returned, chosen: Chosen) -> tuple[list[Layer], dict[Verdict, int]]:
    """The layers between the tokens of the text alone, and how many of their heads have each verdict."""
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
    """What is to be known of how they were read."""
    if isinstance(attention, Returned):
        return (attention.reason,)
    return attention.remarks(layer.layer for layer in layers)


def sample_with(tokens: int, *queries: int) -> tuple[int, ...]:
    """Rows drawn from a text of so many tokens, by which its heads are certified, and those of `queries`."""
    return tuple(sorted({*queries, *sample_rows(tokens, tokens).tolist()}))


def controls_by_rows(
    reading: Reading, chosen: Chosen, controls: ControlTexts, exchange: Exchange, queries: Sequence[int]
) -> Iterator[list[LayerRows]]:
    """These rows of the layers of every control, one text after the other."""
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
    """These rows of every layer of what is read as `inputs`, of which nothing is proved.

    `end` gets what the model returns, if anybody wants it.
    """
    module, found = reading.model.module, dict[int, LayerRows]()

    def keep(call: AttentionCall) -> None:
        found[call.layer] = LayerRows.of(call, queries)

    with if_it_runs(module, beginning(inputs), reading.model.name):
        read_calls(module, inputs, selection_of(chosen), reading.labels(chosen), keep, end)
    return [found[layer] for layer in sorted(found)]


def check_whole_fits(reading: Reading, chosen: Chosen, what: str) -> None:
    """Raises `DoesNotFitError` where `what` needs whole layers of a long text for which there is no room."""
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
