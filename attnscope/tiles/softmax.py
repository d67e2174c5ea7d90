"""First pass: what the weights of every row are divided by, and what the head makes of its values.

    m' = max(m, max_j s_j)
    l' = l exp(m - m') + sum_j exp(s_j - m')
    o' = o exp(m - m') + sum_j exp(s_j - m') v_j

Milakov and Gimelshein 2018, Online normalizer calculation for softmax; Dao et al. 2022, FlashAttention.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.sdpa import soft_cap
from attnscope.tiles.call import LongCall
from attnscope.tiles.tiling import Sizes, Tiling, tiling


@dataclass(frozen=True, eq=False)
class Head:
    """One head of a long call, ready to be computed: its scale is in `q`.

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
        """How many queries and keys there are."""
        return len(self.q), len(self.k)

    def scaled(self, rows: slice, columns: slice) -> Float[Tensor, "query key"]:
        """What enters the softmax, masks aside."""
        scores = self.q[rows] @ self.k[columns].T
        if self.softcap is not None:
            scores = soft_cap(scores, self.softcap)
        for values in self.added:
            scores = scores + values[rows, columns].to(scores)
        return scores

    def logits(
        self, rows: slice, columns: slice
    ) -> tuple[Float[Tensor, "query key"], Bool[Tensor, "query key"] | None]:
        """The same, -inf where a query may not look; and where it may, None where that is everywhere."""
        scores = self.scaled(rows, columns)
        mask = self.tiles.mask(rows, columns)
        return scores if mask is None else scores.masked_fill_(~mask, -torch.inf), mask


def exponents_(
    logits: Float[Tensor, "query key"], level: Float[Tensor, " query"]
) -> Float[Tensor, "query key"]:
    """`logits - level`, in place, no lower than the logarithm of about the smallest normal number.

    A processor takes a hundred times as long over an exponential that comes out smaller than that, and a
    weight of 1e-38 is none; what may not be looked at is exactly 0 only when it is multiplied by its mask.
    """
    return logits.sub_(level[:, None]).clamp_min_(math.log(torch.finfo(logits.dtype).tiny) + 1)


class Heads:
    """The heads of one call; what the rule allows is asked once for all that it is the same for."""

    def __init__(self, call: LongCall, sizes: Sizes, dtype: torch.dtype) -> None:
        self.call, self.sizes, self.dtype = call, sizes, dtype
        self.tilings: dict[int, Tiling] = {}

    def in_double(self) -> "Heads":
        """The same in float64, for a few rows that are shown one by one."""
        other = Heads(self.call, self.sizes, torch.float64)
        other.tilings = self.tilings
        return other

    def tiling(self, head: int) -> Tiling:
        place = head if self.call.rule.per_head else 0
        if place not in self.tilings:
            self.tilings.clear()  # heads come one after the other
            (_, queries, _), keys = self.call.q.shape, self.call.k.shape[1]
            device = self.call.q.device
            self.tilings[place] = tiling(self.call.rule, place, queries, keys, self.sizes, device)
        return self.tilings[place]

    def head(self, head: int) -> Head:
        call, shared = self.call, self.call.key_head(head)
        sinks = None if call.sinks is None else call.sinks[head].to(call.q.device, self.dtype)
        return Head(
            q=call.q[head].to(self.dtype) * call.scale,
            k=call.k[shared].to(self.dtype),
            v=call.v[shared].to(self.dtype),
            softcap=call.softcap,
            added=tuple(term.values[head if len(term.values) > 1 else 0] for term in call.terms),
            sinks=None if sinks is None else sinks.reshape(-1).expand(call.q.shape[1]),
            tiles=self.tiling(head),
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Of every query: the logarithm of what its weights are divided by, a sink's share in it, and its output.

    `moved` is the sum of weight x norm, where norms were given. NaN for a query without a key.
    """

    log_sum: Float[Tensor, " query"]
    output: Float[Tensor, "query value_dim"]
    moved: Float[Tensor, " query"] | None = None


def rows_of(head: Head, norms: Float[Tensor, " key"] | None = None) -> Rows:
    """Every row's denominator and output, in float64, over one tile after the other."""
    beside = head.v if norms is None else torch.cat([head.v, norms.to(head.v)[:, None]], 1)
    queries, width = len(head.q), beside.shape[1]
    log_sum = torch.empty(queries, dtype=torch.float64, device=head.q.device)
    mixed = torch.empty(queries, width, dtype=torch.float64, device=head.q.device)
    for rows in head.tiles.rows():
        log_sum[rows], mixed[rows] = _block(head, rows, beside)
    value_dim = head.v.shape[1]
    return Rows(log_sum, mixed[:, :value_dim], None if norms is None else mixed[:, value_dim])


def weights_of(head: Head, queries: range, keys: range) -> Float[Tensor, "query key"]:
    """The weights of a few queries on some keys, NaN where a query may not look; on the CPU."""
    found = torch.full((len(queries), len(keys)), torch.nan, dtype=torch.float64)
    for rows in head.tiles.rows():
        mine = range(max(rows.start, queries.start), min(rows.stop, queries.stop))
        if not mine:
            continue
        log_sum, _ = _block(head, rows, head.v[:, :0])
        for columns in head.tiles.columns(rows):
            those = range(max(columns.start, keys.start), min(columns.stop, keys.stop))
            if not those:
                continue
            logits = head.logits(rows, columns)[0].double()
            weights = (logits - log_sum[:, None]).exp().masked_fill(logits == -torch.inf, torch.nan)
            place = _within(mine, queries.start), _within(those, keys.start)
            found[place] = weights[_within(mine, rows.start), _within(those, columns.start)].cpu()
    return found


def _within(part: range, start: int) -> slice:
    return slice(part.start - start, part.stop - start)


def _block(head: Head, rows: slice, beside: Float[Tensor, "key width"]) -> tuple[Tensor, Tensor]:
    count, device = rows.stop - rows.start, head.q.device
    peak = torch.full((count,), -torch.inf, dtype=head.q.dtype, device=device)
    total = torch.zeros(count, dtype=torch.float64, device=device)
    mixed = torch.zeros(count, beside.shape[1], dtype=torch.float64, device=device)
    for columns in head.tiles.columns(rows):
        logits, mask = head.logits(rows, columns)
        higher = torch.maximum(peak, logits.amax(-1))
        level = higher.masked_fill(higher == -torch.inf, 0.0)  # a row without a key so far
        each = exponents_(logits, level).exp_()
        if mask is not None:
            each.mul_(mask)
        faded = (peak - level).exp().double()
        total.mul_(faded).add_(each.sum(-1))
        mixed.mul_(faded[:, None]).add_(each @ beside[columns])
        peak = higher
    unanswered = peak == -torch.inf
    peak = peak.double()
    mixed = mixed / total[:, None]
    log_sum = peak + total.log()
    if head.sinks is not None:
        with_sink = torch.logaddexp(log_sum, head.sinks[rows].double())
        mixed = mixed * (log_sum - with_sink).exp()[:, None]
        log_sum = with_sink
    return log_sum.masked_fill(unanswered, torch.nan), mixed.masked_fill(unanswered[:, None], torch.nan)
