"""The worked example on a real model: one head, from what its layer reads to what that writes.

The matrices behind its queries, keys and values are found by what a model's modules do, by no names and no
list of architectures: of all modules beside an attention whose output is their input times a matrix, those
are its projections whose columns are the head's own vectors, number by number. Where something stands between
(rotary positions, a norm), no column is, and that is said.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.heads.head import recompute_head
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.running import evaluating, hooked
from attnscope.errors import InputError
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import EXACT, exact
from attnscope.results import HeadAttention
from attnscope.results.steps import Check, Given
from attnscope.tokens import Tokens
from attnscope.verbs.sdpa.attention import beside_of, of_head, work_out
from attnscope.verbs.sdpa.result import Pair, Worked
from attnscope.vocabulary import THEATRE

PAIRS = (("watch", "movie"), ("movie", "watch"), ("theatre", "watch"), ("watch", "theatre"))
_OFF = 1e-4  # of the largest number: what two runs and two orders of adding up may differ by


@dataclass(frozen=True, eq=False)
class Linear:
    """What one module did in a run: what it read, what it wrote, and its weight, whichever way round."""

    read: Float[Tensor, "token dim"]
    written: Float[Tensor, "token other"]
    weight: Tensor
    bias: Float[Tensor, " other"] | None

    @cached_property
    def matrix(self) -> Float[Tensor, "dim other"] | None:
        """What `read` was multiplied by to give `written`; None where it was not by this weight alone."""
        weight = exact(self.weight.detach()).cpu()
        for matrix in (weight.T, weight):
            if matrix.shape == (self.read.shape[1], self.written.shape[1]):
                made = self.read @ matrix if self.bias is None else self.read @ matrix + self.bias
                if _alike(made, self.written, made.abs().max()):
                    return matrix
        return None


@dataclass(frozen=True, eq=False)
class Part:
    """The columns of a projection that make the vectors of one head, or the rows that read them."""

    linear: Linear
    matrix: Float[Tensor, "dim other"]  # the whole of it
    place: slice


@contextmanager
def watching(model: nn.Module, call: AttentionCall) -> Iterator[list[Linear]]:
    """While open, what every linear module beside the attention of `call` does for the first text."""
    beside = call.module.rpartition(".")[0]
    around = model.get_submodule(beside) if beside else model
    seen: list[Linear] = []

    def keep(module: nn.Module, given: tuple[object, ...], output: object) -> None:
        read = given[0] if given else None
        if not isinstance(read, Tensor) or not isinstance(output, Tensor) or not read.is_floating_point():
            return
        first = (each[0] if each.ndim == 3 else each for each in (read, output))
        rows, written = (exact(each.detach()).cpu() for each in first)
        if rows.ndim == written.ndim == 2:
            weight, bias = weight_of(module), weight_of(module, "bias")
            assert weight is not None, "only such modules are watched"
            seen.append(Linear(rows, written, weight, None if bias is None else exact(bias.detach()).cpu()))

    with hooked(
        module.register_forward_hook(keep)
        for module in around.modules()
        if isinstance(getattr(module, "weight", None), Tensor) and module.weight.ndim == 2
    ):
        yield seen


def _alike(a: Tensor, b: Tensor, largest: Tensor) -> bool:
    return bool(((a - b).abs() <= _OFF * largest).all())


def part_of(linears: list[Linear], vectors: Float[Tensor, "token dim"], side: str) -> Part | None:
    """The part of the module that has `written` the vectors, or `read` them (`side`); None where none has."""
    width, wanted = vectors.shape[1], exact(vectors)
    largest = wanted.abs().max().clamp_min(torch.finfo(EXACT).tiny)
    for linear in linears:
        table: Tensor = getattr(linear, side)
        if len(table) != len(wanted) or table.shape[1] < width:
            continue
        starts = ((table - wanted[:, :1]).abs() <= _OFF * largest).all(dim=0)[: table.shape[1] - width + 1]
        for first in starts.nonzero().flatten().tolist():
            place = slice(first, first + width)
            if _alike(table[:, place], wanted, largest) and linear.matrix is not None:
                return Part(linear, linear.matrix, place)
    return None


def projections_of(linears: list[Linear], call: AttentionCall, head: int, name: str) -> dict[str, Part]:
    """The parts that make Q, K and V of a head; `InputError` where one of them is not made so."""
    shared = call.key_head(head)
    makers = (part_of(linears, each, "written") for each in (call.q[head], call.k[shared], call.v[shared]))
    parts = {letter: part for letter, part in zip("qkv", makers, strict=True) if part is not None}
    if missing := [letter.upper() for letter in "qkv" if letter not in parts]:
        after = "a norm, a scale or a position comes after the matrix"
        between = f"no module writes its {', '.join(missing)} ({after})"
        rotated = call.unrotated_k
        if rotated is not None and part_of(linears, rotated[shared], "written") is not None:
            between = "rotary positions are turned into its queries and keys after Wq and Wk"
        raise InputError(
            f"{name} is no plain X W: {between}. From Q, K and V on: "
            "attnscope heads ... -o head.npz, then attnscope sdpa head.npz"
        )
    if any(not torch.equal(part.linear.read, parts["q"].linear.read) for part in parts.values()):
        raise InputError(f"{name} makes its queries and its keys of two texts: there is no one X")
    return parts


def theatre(model: nn.Module, inputs: Mapping[str, Any], captured: Capture, layer: int, head: int) -> Worked:
    """One captured head of `model` as a worked example: X is what its attention really reads.

    The queries, keys and values made from X are held against the captured ones, the attention against the
    model's own (its certificate), and the outputs of all heads together against what the layer wrote. Raises
    `InputError` where the model makes no query, key or value by a matrix alone.
    """
    call, real = captured.call(layer), recompute_head(captured, layer, head)
    with watching(model, call) as linears, evaluating(model):
        model(**inputs)
    parts = projections_of(linears, call, head, f"{real.name} of {captured.provenance.model}")
    back = part_of(linears, call.output[head], "read")
    arrays = {"x": parts["q"].linear.read}  # of each projection the head's own columns, of Wo its rows
    for letter, part in parts.items():
        arrays[f"w{letter}"] = part.matrix[:, part.place]
        if part.linear.bias is not None:
            arrays[f"b{letter}"] = part.linear.bias[part.place][None]
    arrays |= {} if back is None else {"wo": back.matrix[back.place]}
    given, tokens = {key: Given(array.numpy()) for key, array in arrays.items()}, real.query_tokens
    worked = work_out(given, names={"token_names": tokens.labels}, name="theatre", **beside_of(real))
    kept = f"output Wo is what {real.name} alone adds to its layer, before the bias"
    lost = "no matrix was found that reads the output: there is no Wo, and no way back to the width of X"
    pairs = (_pair(worked, query, key) for query, key in PAIRS)
    return of_head(
        worked,
        real,
        notes=(*worked.notes, _as_tokens(tokens), kept if back else lost),
        checks=(*_projections(worked, real, given), *_all_heads(call, linears, back)),
        pairs=tuple(pair for pair in pairs if pair is not None),
    )


def _projections(worked: Worked, real: HeadAttention, given: Mapping[str, Given]) -> Iterator[Check]:
    """Q, K and V as made here against those that the model handed to its attention."""
    x = given["x"].values
    for letter in "qkv":
        magnitudes = np.abs(x) @ np.abs(given[f"w{letter}"].values)
        if (bias := given.get(f"b{letter}")) is not None:
            magnitudes = magnitudes + np.abs(bias.values)
        step = worked.step(letter)
        difference = np.abs(step.matrix.values - getattr(real, letter)).max()
        what = f"{letter.upper()} = {step.formula} against the model's own"
        yield Check.of(what, float(difference), _rounding(x.shape[1]) * float(magnitudes.max()))


def _rounding(products: int) -> float:
    """How far a float32 sum of so many products may be off, relative to the sum of their magnitudes.

    It is about eps, times sqrt(products) where all of its roundings add up as in a random walk.
    """
    return float(np.finfo(np.float32).eps) * math.sqrt(products)


def _all_heads(call: AttentionCall, linears: list[Linear], back: Part | None) -> Iterator[Check]:
    parts = [part_of(linears, output, "read") for output in call.output]
    shares = [
        exact(output) @ part.matrix[part.place]
        for output, part in zip(call.output, parts, strict=True)
        if part is not None and back is not None and part.linear is back.linear
    ]
    if back is None or len(shares) < len(parts):
        return
    linear = back.linear
    bias = exact(torch.zeros(back.matrix.shape[1])) if linear.bias is None else linear.bias
    magnitudes = torch.stack([share.abs() for share in shares]).sum(0) + bias.abs()
    difference = (torch.stack(shares).sum(0) + bias - linear.written).abs().max()
    what = f"output Wo of all {call.heads} heads, added up, against what the layer wrote"
    yield Check.of(what, float(difference), _rounding(len(back.matrix)) * float(magnitudes.max()))


def _pair(worked: Worked, query: str, key: str) -> Pair | None:
    """Where the weight from `query` to `key` stands among all that are; equal ones share the best place.

    None where one of them is no single token, or may not look at the other.
    """
    step = worked.step("weights")
    weights, seen = step.matrix, step.allowed
    if query not in weights.rows.names or key not in weights.columns.names:
        return None
    place = weights.rows.names.index(query), weights.columns.names.index(key)
    if seen is not None and not seen[place]:
        return None
    weight, pairs = weights.values[place], weights.values.size if seen is None else int(seen.sum())
    return Pair(query, key, float(weight), int((weights.values > weight).sum()) + 1, pairs)


def _as_tokens(tokens: Tokens) -> str:
    words, count = THEATRE.split(), sum(not token.special for token in tokens.items)
    added = [token.name for token in tokens.items if token.special]
    pieces = "each word one token" if count == len(words) else f"{count} word pieces"
    unknown = f", unknown to the model: {', '.join(tokens.unknown)}" if tokens.unknown else ""
    around = f", and {' and '.join(added)} around them" if added else ""
    return f"“{THEATRE}”: {len(words)} words, T = {len(tokens)} tokens: {pieces}{unknown}{around}"
