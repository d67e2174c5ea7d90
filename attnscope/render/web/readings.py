"""Heads as a page knows them: the weights of all, and of those in full also queries, keys and added terms.

Up to `FINE_TOKENS` tokens the weights of many heads are codes of 16 bits, beyond that of 8; those in full are
there as numbers in single precision.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.words.certificate import certificate_words, verdict_words
from attnscope.render.kit.words.command import Heads, opening_head
from attnscope.render.web import codes
from attnscope.render.web.blocks import Blocks
from attnscope.render.web.tokens import sides
from attnscope.results import Certificate, HeadAttention, HeadWeights, Overview, Thumbnails, Verdict
from attnscope.tokens import Token, Tokens

FINE_TOKENS = 200
ROOM = 18_000_000  # bytes that codes may take in a page
_WITH_SCORES = 200  # tokens up to which a head alone has its scores too, and not only q and k
Reading = dict[str, Any]


def of_heads(heads: Sequence[HeadWeights], blocks: Blocks, name: str = "") -> Reading:
    """Heads over the same tokens, each in full."""
    first = heads[0]
    layers, numbers = (sorted({each(head) for head in heads}) for each in (_layer, _head))
    there = {(head.layer, head.head): head.certificate for head in heads}
    certificates = [[there.get((layer, number)) for number in numbers] for layer in layers]
    return {
        "name": name,
        **sides(first.query_tokens, first.key_tokens),
        "layers": layers,
        "heads": numbers,
        "depth": 0,
        "blocks": None,
        "full": {_name(head): in_full(head, blocks, len(heads) == 1) for head in heads},
        "certificates": blocks.json(_certificates(certificates)),
        "opens": {"layer": first.layer, "head": first.head},
        "command": opener(first),
    }


def of_overview(overview: Overview, blocks: Blocks, full: Sequence[HeadAttention] = ()) -> Reading:
    """All heads of an overview; those that are there in full with what their weights are made from."""
    found = overview.tokens or overview
    fine = max(len(found.query_tokens), len(found.key_tokens)) <= FINE_TOKENS
    return {
        "name": "",
        **sides(found.query_tokens, found.key_tokens),
        "layers": found.layers,
        "heads": found.heads,
        "depth": 2 if fine else 1,
        "blocks": _layers(found.dense_weights, fine, blocks),
        "full": {_name(head): in_full(head, blocks, False) for head in full},
        "certificates": blocks.json(_certificates(found.certificates)),
        "command": opener(found),
    }


def of_thumbnails(small: Thumbnails, blocks: Blocks) -> Reading:
    """Thumbnails as they are: where a cell stands for several tokens, it is called by the first of them."""
    fine = max(small.weights.shape[2:]) <= FINE_TOKENS
    weights = [list(layer) for layer in small.weights]
    verdicts = [[verdict_words(each) for each in row] for row in small.verdicts]
    return {
        "name": "",
        **sides(_cells(small.query_tokens, small.step), _cells(small.key_tokens, small.step)),
        "layers": small.layers,
        "heads": small.heads,
        "depth": 2 if fine else 1,
        "blocks": _packed([np.stack(layer) for layer in weights], fine, blocks),
        "full": {},
        "certificates": blocks.json(_table([list(row) for row in small.verdicts], verdicts)),
        "command": opener(small),
    }


def in_full(head: HeadWeights, blocks: Blocks, alone: bool) -> dict[str, Any]:
    """One head: its weights, and where they were recomputed all that they were made from.

    The scores themselves are there for a head `alone` on a text that is not long; else the page makes them of
    queries and keys.
    """
    weights = {"weights": blocks.floats(np.where(head.allowed, head.weights, np.nan)), "q": None}
    if not isinstance(head, HeadAttention):
        return weights
    scored = alone and max(head.weights.shape) <= _WITH_SCORES
    stages = {"scores": blocks.floats(head.scores), "scaled": blocks.floats(head.scaled)} if scored else {}
    return {
        **weights,
        "q": blocks.floats(head.q),
        "k": blocks.floats(head.k),
        "dim": head.q.shape[1],
        "scale": head.scale,
        "softcap": head.softcap,
        "sink": head.sink,
        "sinkByQuery": head.sink_by_query,
        "terms": [{"name": name, "values": blocks.floats(values)} for name, values in head.terms.items()],
        **stages,
    }


def _layers(weights: Sequence[Sequence[np.ndarray]], fine: bool, blocks: Blocks) -> list[str]:
    """One block a layer. Where every head of a layer gives a pair nothing at all, it is masked.

    A softmax in double precision gives 0 to nothing else; rows without a key are no numbers already.
    """
    kind = np.float64 if fine else np.float32
    stacked = [np.stack(layer).astype(kind) for layer in weights]
    for layer, exact in zip(stacked, weights, strict=True):
        layer[:, np.logical_and.reduce([head == 0 for head in exact])] = np.nan
    return _packed(stacked, fine, blocks)


def _packed(layers: Sequence[Float[np.ndarray, "head query key"]], fine: bool, blocks: Blocks) -> list[str]:
    """Layers as blocks, several at a time: deflating takes longest, and needs no lock.

    Codes of 8 bits that have no room are made sparing; the first layer tells.
    """

    def made(layer: Float[np.ndarray, "head query key"]) -> str:
        return Blocks.pack_runs(codes.planes(codes.fine(layer)) if fine else _bytes(codes.coarse(layer)))

    def spared(layer: Float[np.ndarray, "head query key"]) -> str:
        return Blocks.pack_runs(_bytes(codes.sparing(layer)))

    with ThreadPoolExecutor(max_workers=2) as workers:
        cramped = not fine and len(made(layers[0])) * len(layers) > ROOM
        packed = list(workers.map(spared if cramped else made, layers))
    return [blocks.keep(each) for each in packed]


def _bytes(found: codes.Codes) -> bytes:
    return found.astype(np.uint8).tobytes()


def _certificates(rows: Sequence[Sequence[Certificate | None]]) -> dict[str, Any]:
    verdicts = [[None if each is None else each.verdict for each in row] for row in rows]
    return _table(
        verdicts, [["" if each is None else certificate_words(each) for each in row] for row in rows]
    )


def _table(verdicts: list[list[Verdict | None]], words: list[list[str]]) -> dict[str, Any]:
    """Verdict and words of every head by number, each of them once."""
    every = list(dict.fromkeys(each for row in verdicts for each in row))
    texts = list(dict.fromkeys(each for row in words for each in row))
    return {
        "verdicts": [None if each is None else each.value for each in every],
        "texts": texts,
        "rows": [
            [[every.index(verdict), texts.index(text)] for verdict, text in zip(*row, strict=True)]
            for row in zip(verdicts, words, strict=True)
        ],
    }


def _cells(tokens: Tokens, step: int) -> Tokens:
    """One token for every `step`."""
    if step == 1:
        return tokens
    places = range(0, len(tokens), step)
    items = tuple(
        Token(-1, "", f"{tokens.positions[i]} {tokens.names[i]}…", None, None, tokens.items[i].part)
        for i in places
    )
    return Tokens(tokens.texts, items)


def opener(heads: Heads) -> str:
    """The command that writes a page of one head, `{layer}` and `{head}`."""
    return f"{opening_head(heads, '{layer}', '{head}')} -o page.html"


def _layer(head: HeadWeights) -> int:
    return head.layer


def _head(head: HeadWeights) -> int:
    return head.head


def _name(head: HeadWeights) -> str:
    return f"L{head.layer}H{head.head}"
