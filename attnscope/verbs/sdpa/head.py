"""A model's head as a worked example: from its stored q, k and v, or from the input X of its layer.

`capture.circuits` finds the matrices of its queries, keys and values by what the modules do. Where something
comes between (rotary positions, a norm, a scale) Q, K and V are no plain X W, and an error says so.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.analysis.heads.head import recompute_head
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.circuits.paths import Factor, Factors
from attnscope.capture.running import evaluating, hooked
from attnscope.errors import InputError
from attnscope.model.anatomy.placed import weight_of
from attnscope.reference import exact
from attnscope.results import HeadAttention
from attnscope.results.steps import Check, Given
from attnscope.tokens import Tokens
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.result import Pair, Worked, apart
from attnscope.vocabulary import THEATRE

PAIRS = (("watch", "movie"), ("movie", "watch"), ("theatre", "watch"), ("watch", "theatre"))
_OFF = 1e-4  # of the largest number: most difference of two runs and two orders of summation
Runs = Mapping[nn.Module, list[tuple[Float[Tensor, "token read"], Float[Tensor, "token made"]]]]


def work_head(head: HeadAttention) -> Worked:
    """Compute every step of a stored head from its q, k, v, mask, scale and added score terms.

    The result is compared with the stored weights and output; the head's certificate against the model is
    shown too. Raises `InputError` for a head stored without q, k and v.
    """
    if not all(np.isfinite(array).all() for array in (head.q, head.k, head.v)):
        raise InputError(f"{head.name}: the file does not hold its q, k and v: write it again")
    if head.sink is not None and head.sink_by_query:
        raise InputError(f"{head.name} has a sink of its own for every query, which the file does not hold")
    names = {"query_names": head.query_tokens.labels, "key_names": head.key_tokens.labels}
    given = {letter: Given(np.asarray(getattr(head, letter), np.float64)) for letter in "qkv"}

    def checks(worked: Worked) -> Iterator[Check]:
        proof = worked.proofs[0][1]
        for key, array, most in (
            ("weights", head.weights, proof.weight_tolerance),
            ("output", head.output, proof.output_tolerance * float(np.abs(head.v).max())),
        ):
            off = float(apart(worked.step(key).matrix.values, array).max())
            yield Check.of(f"{key} against those of the head", off, most)

    return _of_head(head, given, names, checks=checks, notes=head.notes)


def theatre(
    model: nn.Module, inputs: Mapping[str, Any], captured: Capture, factors: Factors, head: int
) -> Worked:
    """Compute one captured head as a worked example, from the real input X of its attention.

    Queries, keys and values computed from X are compared with the captured ones, the attention with the
    model's own (its certificate), and the summed outputs of all heads with the layer's output. Raises
    `InputError` where queries, keys or values are not X times a matrix.
    """
    call, real = captured.call(factors.layer), recompute_head(captured, factors.layer, head)
    makers, back = (factors.query, factors.key, factors.value), factors.output
    runs = _runs(model, inputs, {each.part for each in (*makers, back) if each is not None})
    given = _projected(real, factors, runs, f"{real.name} of {captured.provenance.model}")
    given |= {} if back is None else {"wo": Given(exact(back.matrix[head]).cpu().numpy())}
    kept = f"output Wo is what {real.name} alone adds to its layer, before the bias"
    lost = "no matrix was found that reads the output: there is no Wo, and no way back to the width of X"

    def checks(worked: Worked) -> Iterator[Check]:
        x = given["x"].values
        for letter in "qkv":  # computed here, against those that the model gave to its attention
            sizes = np.abs(x) @ np.abs(given[f"w{letter}"].values)
            sizes += np.abs(given[f"b{letter}"].values) if f"b{letter}" in given else 0.0
            step = worked.step(letter)
            off = np.abs(step.matrix.values - getattr(real, letter)).max()
            what = f"{letter.upper()} = {step.formula} against the model's own"
            yield Check.of(what, float(off), _rounding(x.shape[1]) * float(sizes.max()))
        if back is not None:
            yield _all_heads(call, back, runs)

    return _of_head(
        real,
        given,
        {"token_names": real.query_tokens.labels},
        checks=checks,
        name="theatre",
        notes=(_as_tokens(real.query_tokens), kept if back else lost),
        pairs=PAIRS,
    )


def _of_head(
    head: HeadAttention,
    given: Mapping[str, Given],
    names: Mapping[str, tuple[str, ...]],
    *,
    checks: Callable[[Worked], Iterable[Check]],
    notes: tuple[str, ...],
    name: str = "",
    pairs: Iterable[tuple[str, str]] = (),
) -> Worked:
    """Compute the arrays as `head` was computed, with its name, certificate and origin.

    Its name is `L0 H11 of the bundled demo model`; a local folder stands by its last name.
    """
    beside = {each: getattr(head, each) for each in ("scale", "softcap", "sink")}
    allowed = None if head.allowed.all() else head.allowed
    worked = work_out(given, names=names, name=name, added=head.terms, allowed=allowed, **beside)
    origin, place = head.provenance, Path(head.provenance.model)
    model = place.name if place.is_absolute() else origin.model
    called = f"{head.name} of " + (f"the bundled {model} model" if origin.demo else model)
    ranked = (_pair(worked, query, key) for query, key in pairs)
    return replace(
        worked,
        title=f"{worked.title}, {called}",
        notes=(*worked.notes, *notes),
        proofs=(*worked.proofs, ("the model's own weights and output", head.certificate)),
        provenance=origin,
        checks=tuple(checks(worked)),
        pairs=tuple(pair for pair in ranked if pair is not None),
    )


def _runs(model: nn.Module, inputs: Mapping[str, Any], parts: Iterable[nn.Module]) -> Runs:
    """Input and output of each module on the first text, one pair per run."""
    seen: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {part: [] for part in parts}

    def keep(part: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any], made: Tensor) -> None:
        read, written = (
            exact((each[0] if each.ndim == 3 else each).detach()).cpu()
            for each in (next(iter((*given, *named.values()))), made)
        )
        seen[part].append((read, written))

    hooks = (part.register_forward_hook(keep, with_kwargs=True) for part in seen)
    with hooked(hooks), evaluating(model):
        model(**inputs)
    return seen


def _projected(head: HeadAttention, factors: Factors, runs: Runs, name: str) -> dict[str, Given]:
    """X, and the matrices and biases that give Q, K and V; `InputError` where one of them is no plain X W."""
    missing, read, given = [], list[Tensor](), dict[str, Given]()
    for letter, factor in zip("qkv", (factors.query, factors.key, factors.value), strict=True):
        place = head.head if letter == "q" else factors.key_head(head.head)
        if factor is None or factor.turned:
            missing.append(letter.upper())
            continue
        x, matrix = runs[factor.part][factor.turn][0], exact(factor.matrix[place]).cpu()
        made, vectors = x @ matrix, torch.from_numpy(getattr(head, letter)).to(x)
        given["x"], given[f"w{letter}"] = Given(x.numpy()), Given(matrix.numpy())
        if (bias := weight_of(factor.part, "bias")) is not None:
            first = factor.firsts[place]
            bias = exact(bias.detach()).cpu()[None, first : first + matrix.shape[1]]
            given[f"b{letter}"], made = Given(bias.numpy()), made + bias
        factor_of_all = (made * vectors).sum() / made.square().sum()
        close = ((factor_of_all * made - vectors).abs() <= _OFF * vectors.abs().max()).all()
        if close and abs(factor_of_all - 1) > _OFF:
            missing.append(letter.upper())
        read.append(x)
    if missing:
        after = "a norm, a scale or a position comes after the matrix"
        between = f"no module writes its {', '.join(missing)} ({after})"
        if factors.key is not None and factors.key.turned:
            between = "rotary positions are turned into its queries and keys after Wq and Wk"
        raise InputError(
            f"{name} is no plain X W: {between}. From Q, K and V on: "
            "attnscope heads ... -o head.npz, then attnscope sdpa head.npz"
        )
    if any(not torch.equal(each, read[0]) for each in read):
        raise InputError(f"{name} makes its queries and its keys of two texts: there is no one X")
    return given


def _rounding(products: int) -> float:
    """Relative error bound of a float32 sum of `products` terms, relative to the sum of their magnitudes.

    It is about eps, times sqrt(products) where all of its roundings add up as in a random walk.
    """
    return float(np.finfo(np.float32).eps) * math.sqrt(products)


def _all_heads(call: AttentionCall, back: Factor, runs: Runs) -> Check:
    written, bias = runs[back.part][back.turn][1], weight_of(back.part, "bias")
    shares = exact(call.output).cpu() @ exact(back.matrix).cpu()
    offset = written.new_zeros(written.shape[1]) if bias is None else exact(bias.detach()).cpu()
    largest = (shares.abs().sum(0) + offset.abs()).max()
    off = (shares.sum(0) + offset - written).abs().max()
    what = f"output Wo of all {call.heads} heads, added up, against what the layer wrote"
    return Check.of(what, float(off), _rounding(back.matrix.shape[:2].numel()) * float(largest))


def _pair(worked: Worked, query: str, key: str) -> Pair | None:
    """Weight from `query` to `key` and its rank among all visible pairs; ties share the best rank.

    None where one of them is no single token, or the key is masked.
    """
    weights, seen = worked.step("weights").matrix, worked.step("weights").seen
    if query not in weights.rows.names or key not in weights.columns.names:
        return None
    place = weights.rows.names.index(query), weights.columns.names.index(key)
    weight = weights.values[place]
    rank = int((weights.values > weight).sum()) + 1
    return Pair(query, key, float(weight), rank, int(seen.sum())) if seen[place] else None


def _as_tokens(tokens: Tokens) -> str:
    words, count = THEATRE.split(), sum(not token.special for token in tokens.items)
    added = [token.name for token in tokens.items if token.special]
    pieces = "each word one token" if count == len(words) else f"{count} word pieces"
    unknown = f", unknown to the model: {', '.join(tokens.unknown)}" if tokens.unknown else ""
    around = f", and {' and '.join(added)} around them" if added else ""
    return f"“{THEATRE}”: {len(words)} words, T = {len(tokens)} tokens: {pieces}{unknown}{around}"
