"""The worked example on a real model: one head of the bundled demo, from its embeddings and back."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.head import recompute_head
from attnscope.attention import AttentionCall
from attnscope.capture import Labels, Selection, record
from attnscope.capture.evaluation_mode import evaluating
from attnscope.results import HeadAttention
from attnscope.results.worked import Check, Given, Pair, Worked
from attnscope.tokens import Tokens
from attnscope.worked.attention import work_out

SENTENCE = "Bill is going to the theatre to watch a new movie"
PAIRS = (("watch", "movie"), ("movie", "watch"), ("theatre", "watch"), ("watch", "theatre"))
LAYER, HEAD = 0, 11


@dataclass
class _Seen:
    """What one attention layer read and what its output projection wrote, in a run that nobody touched."""

    read: Float[Tensor, "token dim"] = field(init=False)
    written: Float[Tensor, "token dim"] = field(init=False)


def theatre(
    model: nn.Module,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    head: int = HEAD,
    source: Mapping[str, Any] | None = None,
) -> Worked:
    """Head `head` of layer 0 of a BERT `model` as a worked example: X is what its attention really reads.

    The queries, keys and values made from X are held against the captured ones, the attention against the
    model's own (its certificate), and the outputs of all heads together against what the layer wrote.
    `source` is as in `Labels`.
    """
    captured = record(model, inputs, Selection(layers=[LAYER]), Labels(tokens, source=source))
    provenance = captured.provenance
    call, real = captured.call(LAYER), recompute_head(captured, LAYER, head)
    attention = model.get_submodule(call.module)
    projection = model.get_submodule(call.module.removesuffix("self") + "output.dense")
    with _watched(attention, projection) as seen, evaluating(model):
        model(**inputs)
    given = _arrays(attention, projection, seen.read, head, call)
    worked = work_out(given, names={"token_names": tokens.labels}, name="theatre")
    named = f"bundled {provenance.model}" if provenance.demo else provenance.model
    return replace(
        worked,
        title=f"{worked.title}, {real.name} of the {named} model",
        notes=(_as_tokens(tokens), f"output Wo is what {real.name} alone adds to its layer, before the bias"),
        proofs=(*worked.proofs, ("the model's own weights and output", real.certificate)),
        checks=(*_projections(worked, real, given), _all_heads(call, projection, seen.written)),
        pairs=tuple(_pair(worked, query, key) for query, key in PAIRS),
        provenance=provenance,
    )


@contextmanager
def _watched(attention: nn.Module, projection: nn.Module) -> Iterator[_Seen]:
    """While open, keeps what `attention` reads and what `projection` writes for the first text."""
    seen = _Seen()

    def keep_read(_: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        seen.read = (inputs[0] if inputs else named["hidden_states"])[0]

    def keep_written(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        seen.written = output[0]

    handles = (
        attention.register_forward_pre_hook(keep_read, with_kwargs=True),
        projection.register_forward_hook(keep_written),
    )
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _arrays(
    attention: Any, projection: Any, read: Float[Tensor, "token dim"], head: int, call: AttentionCall
) -> dict[str, Given]:
    """X, and of each projection what belongs to one head; torch keeps these as `out in`, rows times them."""
    width = call.q.shape[2]
    mine = slice(head * width, (head + 1) * width)
    arrays = {"x": read, "wo": projection.weight[:, mine].T}
    for letter, linear in (("q", attention.query), ("k", attention.key), ("v", attention.value)):
        arrays |= {f"w{letter}": linear.weight[mine].T, f"b{letter}": linear.bias[mine][None]}
    return {key: Given(array.detach().double().cpu().numpy()) for key, array in arrays.items()}


def _projections(worked: Worked, real: HeadAttention, given: Mapping[str, Given]) -> Iterator[Check]:
    """Q, K and V as made here against those that the model handed to its attention.

    The model works in float32: a sum of d products is off by about eps times the sum of their magnitudes,
    times sqrt(d) where all of its roundings add up as in a random walk, which is the tolerance.
    """
    for letter in "qkv":
        magnitudes = np.abs(given["x"].values) @ np.abs(given[f"w{letter}"].values)
        tolerance = _rounding(given["x"].values.shape[1]) * float(
            (magnitudes + np.abs(given[f"b{letter}"].values)).max()
        )
        difference = np.abs(worked.step(letter).matrix.values - getattr(real, letter)).max()
        yield Check(
            f"{letter.upper()} = X W{letter} + b{letter} against the model's own",
            float(difference),
            tolerance,
        )


def _rounding(products: int) -> float:
    """How far a float32 sum of so many products may be off, relative to the sum of their magnitudes."""
    return float(np.finfo(np.float32).eps) * math.sqrt(products)


def _all_heads(call: AttentionCall, projection: Any, written: Float[Tensor, "token dim"]) -> Check:
    """The outputs of all heads through Wo, one by one and added up, against what the layer wrote."""
    width = call.output.shape[2]
    weight = projection.weight.detach().double().cpu().T
    shares = [
        call.output[head].double() @ weight[head * width : (head + 1) * width] for head in range(call.heads)
    ]
    bias = projection.bias.detach().double().cpu()
    magnitudes = sum(share.abs() for share in shares) + bias.abs()
    difference = (sum(shares) + bias - written.double().cpu()).abs().max()
    what = f"output Wo of all {call.heads} heads, added up, against what the layer wrote"
    return Check(what, float(difference), _rounding(len(weight)) * float(magnitudes.max()))


def _pair(worked: Worked, query: str, key: str) -> Pair:
    """Where the weight from `query` to `key` stands among all; equal ones share the best place."""
    weights = worked.step("weights").matrix
    weight = weights.values[weights.rows.names.index(query), weights.columns.names.index(key)]
    return Pair(query, key, float(weight), int((weights.values > weight).sum()) + 1, weights.values.size)


def _as_tokens(tokens: Tokens) -> str:
    """How the words became rows of X."""
    words = [token for token in tokens.items if not token.special]
    added = [token.name for token in tokens.items if token.special]
    pieces = "each word one token" if len(words) == len(SENTENCE.split()) else f"{len(words)} word pieces"
    unknown = f", unknown to the model: {', '.join(tokens.unknown)}" if tokens.unknown else ""
    return (
        f"“{SENTENCE}”: {len(SENTENCE.split())} words, T = {len(tokens)} tokens: {pieces}{unknown}, "
        f"and {' and '.join(added)} around them"
    )
