"""First pass over tiles: online softmax denominators and outputs of every row, and their certificate.

    m' = max(m, max_j s_j)
    l' = l exp(m - m') + sum_j exp(s_j - m')
    o' = o exp(m - m') + sum_j exp(s_j - m') v_j

Milakov and Gimelshein 2018, Online normalizer calculation for softmax; Dao et al. 2022, FlashAttention.

The certificate covers sampled rows in full, and the kernel's output for all rows. `certify_rows` covers the
sampled rows alone. Sampled rows are treated like a short text (`attnscope.verify`): weights and output in
float64 against the model's own kernel, with every applicable fault inserted. The tiled output of all rows is
compared with the kernel's; tiles are as imprecise as the kernel, so twice its tolerance is allowed there.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import threshold

from attnscope.arithmetic import Operands, attend, soft_cap
from attnscope.attention import AttentionCall
from attnscope.reference import EXACT, brought, exact, place
from attnscope.results import Certificate, Fault, Verdict
from attnscope.tiles.tiling import LongCall, Mask, Room, Sizes, Tiling, laid_out, tiling
from attnscope.verify import certify_heads, conclusion
from attnscope.verify.certificate import hidden_by_window

Logits = tuple[Float[Tensor, "query key"], Mask | None]
_ROOM = -40.0  # logarithms above which an exponential, and a product of two, is far from the smallest number


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a long call as tensors for computing; `q` is already scaled.

    `added` is what the model adds to the scaled scores, as it wrote it out itself.
    """

    q: Float[Tensor, "query dim"]
    k: Float[Tensor, "key dim"]
    v: Float[Tensor, "key value_dim"]
    softcap: float | None
    added: tuple[Float[Tensor, "query key"], ...]
    sinks: Float[Tensor, " query"] | None
    tiles: Tiling

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of queries and keys."""
        return len(self.q), len(self.k)

    def scaled(
        self, rows: slice, columns: slice, out: Float[Tensor, "query key"] | None = None
    ) -> Float[Tensor, "query key"]:
        """The softmax input of a tile before masking; written to `out` if given."""
        scores = torch.mm(self.q[rows], self.k[columns].T, out=out)
        if self.softcap is not None:
            scores = soft_cap(scores, self.softcap)
        for values in self.added:
            scores = scores + values[rows, columns].to(scores)
        return scores

    def logits(self, rows: slice, columns: slice, out: Float[Tensor, "query key"] | None = None) -> Logits:
        """The softmax input of a tile, -inf where masked, and its mask (None: nothing is masked)."""
        scores, mask = self.scaled(rows, columns, out), self.tiles.mask(rows, columns)
        return masked_(scores, mask), mask


def masked_(scores: Float[Tensor, "query key"], mask: Mask | None) -> Float[Tensor, "query key"]:
    """The scores with -inf written where a query may not attend."""
    return scores if mask is None else torch.minimum(scores, mask.ceiling.to(scores), out=scores)


def exponents(
    logits: Float[Tensor, "query key"], level: Float[Tensor, " query"]
) -> Float[Tensor, "query key"]:
    """`logits - level` in place, clamped so that the exponential is a normal number.

    A processor takes a hundred times as long over an exponential that comes out smaller than that.
    """
    return logits.sub_(level[:, None]).clamp_min_(_lowest(logits.dtype))


def told_apart_(weights: Float[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    """The exponentials with those at the lower clamp set to 0, in place."""
    made: Tensor = threshold(weights, 2 * math.exp(_lowest(weights.dtype)), 0.0, inplace=True)
    return made


def _lowest(dtype: torch.dtype) -> float:
    return math.log(torch.finfo(dtype).tiny) + 1


class Heads:
    """The heads of one call; the tiling is computed once for all heads that share it."""

    def __init__(self, call: LongCall, sizes: Sizes, dtype: torch.dtype) -> None:
        self.call, self.sizes, self.dtype = call, sizes, dtype
        self.tilings: dict[int, Tiling] = {}
        self._asking = Lock()

    def in_double(self) -> "Heads":
        """The heads in float64, for computing a few rows exactly."""
        other = Heads(self.call, self.sizes, EXACT)
        other.tilings = self.tilings
        return other

    def tiling(self, head: int) -> Tiling:
        """The tiling of a head; thread-safe, and for tilings by head only the last is kept."""
        if self.call.rule.per_head:
            found = self.tilings.get(head)
            if found is None:
                found = self._asked(head)
                self.tilings = {head: found}
            return found
        with self._asking:
            if 0 not in self.tilings:
                self.tilings[0] = self._asked(0)
            return self.tilings[0]

    def _asked(self, head: int) -> Tiling:
        (_, queries, _), keys = self.call.q.shape, self.call.k.shape[1]
        return tiling(self.call.rule, head, queries, keys, self.sizes, self.call.q.device)

    def head(self, head: int) -> Head:
        call, shared = self.call, self.call.key_head(head)
        sinks = None if call.sinks is None else self._typed(call.sinks[head])
        return Head(
            q=self._typed(call.q[head]) * call.scale,
            k=self._typed(call.k[shared]),
            v=self._typed(call.v[shared]),
            softcap=call.softcap,
            added=tuple(term.values[head if len(term.values) > 1 else 0] for term in call.terms),
            sinks=None if sinks is None else sinks.reshape(-1).expand(call.q.shape[1]),
            tiles=self.tiling(head),
        )

    def _typed(self, tensor: Tensor) -> Tensor:
        return exact(tensor) if self.dtype == EXACT else tensor.to(self.dtype)


@dataclass(frozen=True, eq=False)
class Rows:
    """Results of some queries: the log denominator of the weights, sink included, and the output.

    `moved` is the sum of weight x norm, where norms were given. In float64, NaN for a query without a key.
    """

    log_sum: Float[Tensor, " query"]
    output: Float[Tensor, "query value_dim"]
    moved: Float[Tensor, " query"] | None = None

    def to(self, other: Tensor) -> "Rows":
        """The rows with the dtype and device of another tensor."""
        moved = None if self.moved is None else self.moved.to(other)
        return Rows(self.log_sum.to(other), self.output.to(other), moved)


def joined(blocks: Sequence[Rows]) -> Rows:
    """The blocks' rows concatenated in order."""
    moved = [each.moved for each in blocks if each.moved is not None]
    return Rows(
        torch.cat([each.log_sum for each in blocks]),
        torch.cat([each.output for each in blocks]),
        torch.cat(moved) if moved else None,
    )


@dataclass(frozen=True, eq=False)
class Values:
    """The matrix that weights multiply: values of the keys, with norms as one more column if given."""

    beside: Float[Tensor, "key width"]
    value_dim: int

    def rows(self, log_sum: Tensor, mixed: Float[Tensor, "query width"]) -> Rows:
        moved = mixed[:, self.value_dim] if mixed.shape[1] > self.value_dim else None
        return Rows(log_sum, mixed[:, : self.value_dim], moved)


def values_of(head: Head, norms: Float[Tensor, " key"] | None = None) -> Values:
    beside = head.v if norms is None else torch.cat([head.v, norms.to(head.v)[:, None]], 1)
    return Values(beside, head.v.shape[1])


def rows_of(head: Head, norms: Float[Tensor, " key"] | None = None) -> Rows:
    """The denominator and output of every row, computed tile by tile."""
    values, room = values_of(head, norms), Room(head.q, head.tiles.sizes)
    return joined([block_of(head, rows, values, room)[0] for rows in head.tiles.rows()])


def weights_of(head: Head, queries: range, keys: range) -> Float[Tensor, "query key"]:
    """The weights of some queries on some keys in float64 on the CPU; NaN where masked."""
    found = torch.full((len(queries), len(keys)), torch.nan, dtype=EXACT)
    for rows in head.tiles.rows():
        mine = range(max(rows.start, queries.start), min(rows.stop, queries.stop))
        if not mine:
            continue
        log_sum = block_of(head, rows, Values(head.v[:, :0], 0), Room(head.q, head.tiles.sizes))[0].log_sum
        for columns in head.tiles.columns(rows):
            those = range(max(columns.start, keys.start), min(columns.stop, keys.stop))
            if not those:
                continue
            logits = exact(head.logits(rows, columns)[0])
            weights = (logits - log_sum[:, None]).exp().masked_fill(logits == -torch.inf, torch.nan)
            cells = _within(mine, queries.start), _within(those, keys.start)
            found[cells] = weights[_within(mine, rows.start), _within(those, columns.start)].cpu()
    return found


def _within(part: range, start: int) -> slice:
    return slice(part.start - start, part.stop - start)


@dataclass(frozen=True, eq=False)
class Held:
    """A tile kept for the second pass: exp(logits - level), 0 where masked.

    All other entries are far above underflow. By row, `total` is their sum, and `logs` the sum of each times
    its `logits - level`, from which the entropy follows.

    """

    exponentials: Float[Tensor, "query key"]
    level: Float[Tensor, " query"]
    total: Float[Tensor, " query"]
    logs: Float[Tensor, " query"]
    mask: Mask | None

    def weights(self, log_sum: Float[Tensor, " query"]) -> "Weighted | None":
        """The weights, in place, from the final denominators; None where some would underflow."""
        below = self.level - log_sum
        if not bool((below > _ROOM).all()):
            return None
        factor = below.exp()
        total = self.total * factor
        return Weighted(self.exponentials.mul_(factor[:, None]), total, -(self.logs * factor + below * total))


@dataclass(frozen=True, eq=False)
class Weighted:
    """Weights of a tile, with the sum and the entropy of each row."""

    weights: Float[Tensor, "query key"]
    total: Float[Tensor, " query"]
    entropy: Float[Tensor, " query"]


def block_of(
    head: Head, rows: slice, values: Values, room: Room, held: int = 0
) -> tuple[Rows, dict[int, Held]]:
    """The rows of one block of queries, and up to `held` of its tiles by their first key."""
    room.clear()
    scratch = room.take()
    count, there = rows.stop - rows.start, place(head.q.device)
    peak = head.q.new_full((count,), -torch.inf)
    total = torch.zeros(count, dtype=EXACT, device=there)
    mixed = torch.zeros(count, values.beside.shape[1], dtype=EXACT, device=there)
    kept: dict[int, Held] = {}
    for columns in head.tiles.columns(rows):
        scores = head.scaled(rows, columns, laid_out(scratch, rows, columns))
        mask, lowest = head.tiles.mask(rows, columns), scores.amin(-1)
        logits = masked_(scores, mask)
        higher = torch.maximum(peak, logits.amax(-1))
        level = higher.masked_fill(higher == -torch.inf, 0.0)  # a row without a key so far
        holds = len(kept) < held and bool((lowest - level > _ROOM).all())
        below = exponents(logits, level)
        each = torch.exp(below, out=laid_out(room.take(), rows, columns) if holds else below)
        if mask is not None:
            each.mul_(mask.factor.to(each))
        here = each.sum(-1)
        if holds:
            kept[columns.start] = Held(each, level, here, below.mul_(each).sum(-1), mask)
        faded = exact((peak - level).exp())
        total.mul_(faded).add_(exact(here))
        mixed.mul_(faded[:, None]).add_(exact(each @ values.beside[columns]))
        peak = higher
    log_sum = exact(peak) + total.log()
    unanswered = log_sum == -torch.inf
    mixed /= total[:, None]
    if head.sinks is not None:
        with_sink = torch.logaddexp(log_sum, exact(head.sinks[rows]))
        mixed *= (log_sum - with_sink).exp()[:, None]
        log_sum = with_sink
    log_sum = log_sum.masked_fill(unanswered, torch.nan)
    return values.rows(log_sum, mixed.masked_fill(unanswered[:, None], torch.nan)), kept


def certify_rows(call: LongCall, heads: Sequence[int]) -> tuple[Certificate, ...]:
    """The certificates of `heads` by the sampled rows alone; the sample must hold their weights."""
    some = sampled(call)
    return tuple(
        _with_places(call, some, head, found)
        for head, found in zip(heads, certify_heads(some, heads), strict=True)
    )


def certify_long(call: LongCall, head: int, rows: Rows) -> Certificate:
    """The certificate of `head` by its sampled rows, which must hold its weights, and its tiled `rows`."""
    (of_sample,) = certify_rows(call, (head,))
    everywhere, tolerance = _output_error(call, head, rows), 2 * of_sample.output_tolerance
    output_error = _worse(of_sample.output_error, everywhere)
    agrees = _agrees(of_sample) and everywhere <= tolerance
    verdict, reason = _concluded(of_sample, agrees, output_error, of_sample.faults)
    return replace(
        of_sample, verdict=verdict, reason=reason, output_error=output_error, output_tolerance=tolerance
    )


def sampled(call: LongCall) -> AttentionCall:
    """The sampled rows as an attention call."""
    assert call.sample is not None, "a long call is certified by its sample"
    rows = call.rows(call.sample.rows.tolist())
    return replace(rows, projection=None, value_projection=None).at(place(call.q.device))


def _with_places(call: LongCall, some: AttentionCall, head: int, found: Certificate) -> Certificate:
    faults = tuple(
        sorted((*found.faults, *_of_places(call, some, head, found)), key=lambda fault: fault.power)
    )
    verdict, reason = _concluded(found, _agrees(found), found.output_error, faults)
    return replace(found, verdict=verdict, reason=reason, faults=faults)


def _agrees(found: Certificate) -> bool:
    return found.weight_error <= found.weight_tolerance and found.output_error <= found.output_tolerance


def _concluded(
    found: Certificate, agrees: bool, output_error: float, faults: tuple[Fault, ...]
) -> tuple[Verdict, str]:
    verdict, reason = conclusion(agrees, found.weight_error, output_error, faults)
    if verdict in (Verdict.CERTIFIED, Verdict.INCONCLUSIVE) and found.verdict is Verdict.PARTIAL:
        return Verdict.PARTIAL, found.reason
    return verdict, reason


def _of_places(call: LongCall, some: AttentionCall, head: int, of_sample: Certificate) -> Iterator[Fault]:
    assert call.sample is not None, "it has been sampled"
    operands, rows = some.operands(head), call.sample.rows.to(some.q.device)
    if call.window is not None:
        allowed = some.allowed_matrix(head)
        read = torch.tensor([not token.padding for token in call.key_tokens.items], device=rows.device)
        wider = allowed | hidden_by_window(call, allowed, rows, read)
        if not torch.equal(wider, allowed):
            yield _fault("window dropped", some, head, operands.but(allowed=wider[None]), of_sample)
    if call.q.shape[1:] == call.k.shape[1:]:
        exchanged = operands.but(q=operands.k[:, rows], k=exact(call.q[head : head + 1]))
        yield _fault("query and key exchanged", some, head, exchanged, of_sample)


def _fault(name: str, some: AttentionCall, head: int, faulty: Operands, of_sample: Certificate) -> Fault:
    stages = attend(faulty)
    answered = some.allowed_matrix(head).any(-1)
    largest = exact(some.v[some.key_head(head)]).abs().max().clamp_min(torch.finfo(EXACT).tiny)
    off = (stages.weights[0] - exact(some.weights[head]))[answered].abs()
    output = (stages.output[0] - exact(some.output[head]))[answered].abs() / largest
    errors = [float(each.max()) if each.numel() else 0.0 for each in (off, output)]
    power = max(errors[0] / of_sample.weight_tolerance, errors[1] / of_sample.output_tolerance)
    return Fault(name, errors[0], errors[1], power)


def _output_error(call: LongCall, head: int, rows: Rows) -> float:
    """The largest output error of any row that has a key, over the largest value entry."""
    largest = exact(call.v[call.key_head(head)]).abs().max().clamp_min(torch.finfo(EXACT).tiny)
    numbers = call.q[head].isfinite().all(-1) & call.k[call.key_head(head)].isfinite().all()
    answered = ~(rows.log_sum.isnan() & numbers.to(rows.log_sum.device))  # all but those without any key
    off = (rows.output - brought(call.output[head]).to(rows.output)).abs()[answered]
    return float(off.max() / largest) if off.numel() else 0.0


def _worse(one: float, other: float) -> float:
    return math.nan if math.isnan(one + other) else max(one, other)
