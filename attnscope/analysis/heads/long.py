"""One head of a long text over tiles: blocks, strongest keys, one row in full."""

import math

import numpy as np
import torch
from jaxtyping import Float

from attnscope.analysis.heads.long_overview import heads_of, long_call_of, sampled_words, special_mass
from attnscope.analysis.scores import sorts
from attnscope.attention import Capture
from attnscope.measures import MEASURES, Need
from attnscope.results import LongHead
from attnscope.tiles.certify import certify_long
from attnscope.tiles.collectors import Collector, Measured, OnKeys, Pooled, TopKeys, collect
from attnscope.tiles.softmax import Heads, weights_of
from attnscope.tiles.stream import Stream
from attnscope.vocabulary import Pool

BLOCKS = 256  # of a heatmap in either direction, at most
EXACT = 1024  # queries or keys of a window that is shown pair by pair, at most
TOP = 5  # strongest keys of every query


def read_long_head(
    captured: Capture,
    layer: int,
    head: int,
    *,
    block: int = 0,
    zoom: tuple[range, range] | None = None,
    query: int | None = None,
    pool: Pool = Pool.MEAN,
) -> LongHead:
    """Head `head` of a long layer, by default in blocks of the whole text.

    A `zoom` of queries and keys is shown pair by pair as far as `EXACT` allows, else in blocks of its own; a
    `query` in full. `pool` is what its picture shows.
    """
    call = long_call_of(captured, layer, block)
    heads = heads_of(call)
    one = heads.head(head)
    queries, keys = zoom or (range(one.shape[0]), range(one.shape[1]))
    steps = step_of(len(queries), zoom is not None), step_of(len(keys), zoom is not None)
    pooled, top = Pooled(queries, keys, steps), TopKeys(min(TOP, one.shape[1]), one.shape[0])
    entropy, mass = Measured(MEASURES["entropy"]), OnKeys(sorts.special(call.key_tokens))
    special = bool(sorts.special(call.key_tokens).any())
    collectors: list[Collector] = [pooled, top, entropy, *([mass] if special else [])]
    rows = collect(Stream(one, needs=(Need.ALLOWED,)), collectors)
    mean, largest = pooled.mean.numpy(), pooled.maximum.numpy()
    if steps == (1, 1) and zoom is not None:
        mean = largest = weights_of(heads.in_double().head(head), queries, keys).numpy()
    assert call.sample is not None, "long calls hold a sample"
    return LongHead(
        layer=layer,
        head=head,
        kind=call.kind,
        heads=call.heads,
        layers=captured.layers,
        query_tokens=call.query_tokens,
        key_tokens=call.key_tokens,
        first=(queries.start, keys.start),
        size=(len(queries), len(keys)),
        steps=steps,
        pool=pool,
        mean=mean,
        largest=largest,
        pairs=pooled.counts.long().numpy(),
        entropy=torch.cat(entropy.blocks).cpu().numpy(),
        top_keys=top.keys.numpy(),
        top_weights=top.weights.numpy(),
        module=call.module,
        certificate=certify_long(call, head, rows),
        sampled=len(call.sample.rows),
        provenance=captured.provenance,
        special_mass=special_mass(call.key_tokens, [mass.means.tolist()]) if special else None,
        query=query,
        row=None if query is None else _row(heads, head, query),
        tower=captured.tower,
        block=call.block,
        blocks=captured.blocks(layer),
        notes=tuple(dict.fromkeys((*captured.notes(layer), sampled_words(call)))),
    )


def step_of(length: int, zoomed: bool) -> int:
    """Positions in a block: a power of two, so that there are 128 to 256; 1 in a small window."""
    if length <= (EXACT if zoomed else BLOCKS):
        return 1
    return int(2 ** math.ceil(math.log2(length / BLOCKS)))


def _row(heads: Heads, head: int, query: int) -> Float[np.ndarray, " key"]:
    """The weights of one query in float64, masked keys 0."""
    one = heads.in_double().head(head)
    row = weights_of(one, range(query, query + 1), range(one.shape[1]))[0]
    return row.nan_to_num(0.0).numpy()
