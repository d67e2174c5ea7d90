"""The worked example on a real model: one head, from what its layer reads to what that writes."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from attnscope.analysis.heads.head import recompute_head
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.running import evaluating
from attnscope.reference import exact
from attnscope.results import HeadAttention
from attnscope.results.worked import Check, Given, Pair, Worked
from attnscope.tokens import Tokens
from attnscope.worked.attention import beside_of, called, work_out
from attnscope.worked.projections import Linear, Part, projections_of, reads, watching

SENTENCE = "Bill is going to the theatre to watch a new movie"
PAIRS = (("watch", "movie"), ("movie", "watch"), ("theatre", "watch"), ("watch", "theatre"))
LAYER, HEAD = 0, 11


def theatre(
    model: nn.Module, inputs: Mapping[str, Any], captured: Capture, layer: int = LAYER, head: int = HEAD
) -> Worked:
    """One captured head of `model` as a worked example: X is what its attention really reads.

    The queries, keys and values made from X are held against the captured ones, the attention against the
    model's own (its certificate), and the outputs of all heads together against what the layer wrote. Raises
    `InputError` where the model makes no query, key or value by a matrix alone.
    """
    call, real = captured.call(layer), recompute_head(captured, layer, head)
    with watching(model, call) as linears, evaluating(model):
        model(**inputs)
    parts = projections_of(linears, call, head, f"{real.name} of {captured.provenance.model}")
    back = reads(linears, call.output[head])
    tokens = real.query_tokens
    given = _arrays(parts, back)
    worked = work_out(given, names={"token_names": tokens.labels}, name="theatre", beside=beside_of(real))
    kept = f"output Wo is what {real.name} alone adds to its layer, before the bias"
    lost = "no matrix was found that reads the output: there is no Wo, and no way back to the width of X"
    pairs = (_pair(worked, query, key) for query, key in PAIRS)
    return replace(
        worked,
        title=f"{worked.title}, {called(real)}",
        notes=(*worked.notes, _as_tokens(tokens), kept if back else lost),
        proofs=(*worked.proofs, ("the model's own weights and output", real.certificate)),
        checks=(*_projections(worked, real, given, parts), *_all_heads(call, linears, back)),
        pairs=tuple(pair for pair in pairs if pair is not None),
        provenance=captured.provenance,
    )


def _arrays(parts: Mapping[str, Part], back: Part | None) -> dict[str, Given]:
    """X, and of each projection what belongs to one head: its columns, and of Wo its rows."""
    arrays = {"x": parts["q"].linear.read}
    for letter, part in parts.items():
        arrays[f"w{letter}"] = part.matrix[:, part.place]
        if part.linear.bias is not None:
            arrays[f"b{letter}"] = part.linear.bias[part.place][None]
    if back is not None:
        arrays["wo"] = back.matrix[back.place]
    return {key: Given(array.numpy()) for key, array in arrays.items()}


def _projections(
    worked: Worked, real: HeadAttention, given: Mapping[str, Given], parts: Mapping[str, Part]
) -> Iterator[Check]:
    """Q, K and V as made here against those that the model handed to its attention.

    The model works in float32: a sum of d products is off by about eps times the sum of their magnitudes,
    times sqrt(d) where all of its roundings add up as in a random walk, which is the tolerance.
    """
    for letter in parts:
        magnitudes = np.abs(given["x"].values) @ np.abs(given[f"w{letter}"].values)
        bias = given.get(f"b{letter}")
        magnitudes = magnitudes if bias is None else magnitudes + np.abs(bias.values)
        tolerance = _rounding(given["x"].values.shape[1]) * float(magnitudes.max())
        difference = np.abs(worked.step(letter).matrix.values - getattr(real, letter)).max()
        formula = f"{letter.upper()} = {worked.step(letter).formula}"
        yield Check.of(f"{formula} against the model's own", float(difference), tolerance)


def _rounding(products: int) -> float:
    """How far a float32 sum of so many products may be off, relative to the sum of their magnitudes."""
    return float(np.finfo(np.float32).eps) * math.sqrt(products)


def _all_heads(call: AttentionCall, linears: list[Linear], back: Part | None) -> Iterator[Check]:
    parts = [reads(linears, output) for output in call.output]
    if back is None or any(part is None or part.linear is not back.linear for part in parts):
        return
    linear = back.linear
    shares = [
        exact(output) @ part.matrix[part.place]
        for output, part in zip(call.output, parts, strict=True)
        if part is not None
    ]
    bias = exact(torch.zeros(back.matrix.shape[1])) if linear.bias is None else linear.bias
    magnitudes = torch.stack([share.abs() for share in shares]).sum(0) + bias.abs()
    difference = (torch.stack(shares).sum(0) + bias - linear.written).abs().max()
    what = f"output Wo of all {call.heads} heads, added up, against what the layer wrote"
    yield Check.of(what, float(difference), _rounding(len(back.matrix)) * float(magnitudes.max()))


def _pair(worked: Worked, query: str, key: str) -> Pair | None:
    """Where the weight from `query` to `key` stands among all that are; equal ones share the best place.

    None where one of them is no single token, or may not look at the other.
    """
    weights, seen = worked.step("weights").matrix, worked.step("weights").allowed
    if query not in weights.rows.names or key not in weights.columns.names:
        return None
    if seen is not None and not seen[weights.rows.names.index(query), weights.columns.names.index(key)]:
        return None
    pairs = weights.values.size if seen is None else int(seen.sum())
    weight = weights.values[weights.rows.names.index(query), weights.columns.names.index(key)]
    return Pair(query, key, float(weight), int((weights.values > weight).sum()) + 1, pairs)


def _as_tokens(tokens: Tokens) -> str:
    words = [token for token in tokens.items if not token.special]
    added = [token.name for token in tokens.items if token.special]
    pieces = "each word one token" if len(words) == len(SENTENCE.split()) else f"{len(words)} word pieces"
    unknown = f", unknown to the model: {', '.join(tokens.unknown)}" if tokens.unknown else ""
    around = f", and {' and '.join(added)} around them" if added else ""
    return f"“{SENTENCE}”: {len(SENTENCE.split())} words, T = {len(tokens)} tokens: {pieces}{unknown}{around}"
