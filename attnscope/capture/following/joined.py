"""One attention over a text that grows: what a layer did in every step of generating, put in one.

In each step a layer is handed the queries of the new tokens and, out of its cache, the keys of those before
them: all of them, or the last few where the cache slides. The queries of step after step are the rows; a key
is taken from the first step that handed it over, and it must be the same in all later ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.attention import AttentionCall, Term
from attnscope.capture.following.call import as_keys
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import Kind

_ROUNDINGS = 32  # machine epsilons by which a key that is made anew from a cache may differ, over the largest
_REMAINDER = ""  # in place of the name of a term


@dataclass(frozen=True, eq=False)
class Rows:
    """What one step adds: the rows of its queries over keys from position `start` on."""

    start: int
    q: Float[Tensor, "head query dim"]
    output: Float[Tensor, "head query value_dim"]
    allowed: Bool[Tensor, "#head query key"]
    added: Mapping[str, Float[Tensor, "#head query key"]]
    weights: Mapping[int, Float[Tensor, "query key"]]
    sinks: Float[Tensor, " head *rows"] | None


class JoinedCall:
    """The calls of one attention, added step by step, as one call over the whole text."""

    def __init__(self, first: AttentionCall) -> None:
        self.first, self.rows = first, list[Rows]()
        self.read = 0  # queries so far
        self.unread = 0  # the most softmaxes of one step that could not be read
        self.reservation = ""  # the first that any step gave cause to
        self.k, self.v = first.k[:, :0], first.v[:, :0]
        self.unrotated = None if first.unrotated_k is None else first.unrotated_k[:, :0]

    def add(self, call: AttentionCall, before: Tensor | None = None) -> None:
        """The next step; `before` is what the key projection last returned for it, if that was seen.

        Raises `InputError` where the keys are not those of the text so far, or not those that they were.
        """
        for name in ("scale", "softcap", "window", "route"):
            if getattr(call, name) != getattr(self.first, name):
                raise InputError(f"the {name} of {call.module} changes while the text grows")
        if call.reweighted is not None:
            instead = "its rows cannot be put together, read the text without generating"
            raise InputError(f"{call.module} changes its weights after the softmax: {instead}")
        start = self._start(call)
        known = self.k.shape[1] - start
        for so_far, now in ((self.k, call.k), (self.v, call.v)):
            _check_same(so_far[:, start:], now[:, :known], call)
        self._remember_unrotated(call, before, known)
        self.k = torch.cat([self.k, call.k[:, known:]], dim=1)
        self.v = torch.cat([self.v, call.v[:, known:]], dim=1)
        self.read += call.q.shape[1]
        self.unread = max(self.unread, call.unread)
        self.reservation = self.reservation or call.reservation
        self.rows.append(_rows(call, start))

    def take_back(self) -> None:
        """Forget the last step, and the keys that it brought."""
        step = self.rows.pop()
        self.read -= step.q.shape[1]
        if self.first.kind is not Kind.CROSS:
            self.k, self.v = self.k[:, : self.read], self.v[:, : self.read]
            self.unrotated = None if self.unrotated is None else self.unrotated[:, : self.read]

    def call(self) -> AttentionCall:
        """All steps as one call, as if the text had been read at once."""
        rows, keys = self.rows, self.k.shape[1]
        names = dict.fromkeys(name for each in rows for name in each.added)
        added = {name: self._by_position([each.added.get(name) for each in rows], 0.0) for name in names}
        allowed = self._by_position([each.allowed for each in rows], False)
        by_query = self.first.sinks is not None and self.first.sinks.ndim > 1
        return replace(
            self.first,
            q=torch.cat([each.q for each in rows], dim=1),
            k=self.k,
            v=self.v,
            terms=tuple(Term(name, values) for name, values in added.items() if name != _REMAINDER),
            allowed=None if allowed.all() else allowed,
            sinks=torch.cat([each.sinks for each in rows], dim=1) if by_query else self.first.sinks,  # type: ignore[misc]
            output=torch.cat([each.output for each in rows], dim=1),
            weights={
                head: torch.cat([_placed(each.weights[head], each.start, keys, 0.0) for each in rows])
                for head in self.first.weights
            },
            unrotated_k=self.unrotated,
            unread=self.unread,
            reservation=self.reservation,
            remainder=added.get(_REMAINDER),
        )

    def _start(self, call: AttentionCall) -> int:
        """Position of the call's first key: the last is the newest; cross-attention sees a whole text."""
        queries, keys, known = call.q.shape[1], call.k.shape[1], self.k.shape[1]
        if call.kind is Kind.CROSS:
            if self.rows and keys != known:
                raise InputError(f"{call.module} looks at {known} keys first and at {keys} later")
            return 0
        if (start := self.read + queries - keys) < 0:
            raise InputError(
                f"{call.module} is handed {keys} keys after {self.read + queries} tokens: a cache of fixed "
                "size, or keys that are no tokens, cannot be shown while a text grows"
            )
        if start > known:
            raise InputError(f"{call.module} has dropped keys that it never looked at")
        return start

    def _remember_unrotated(self, call: AttentionCall, before: Tensor | None, known: int) -> None:
        if self.unrotated is None or call.k.shape[1] == known:
            return
        newest = None if before is None else as_keys(before[0].detach().cpu(), call.k[:, known:])
        self.unrotated = None if newest is None else torch.cat([self.unrotated, newest], dim=1)

    def _by_position(self, parts: Sequence[Tensor | None], missing: bool | float) -> Tensor:
        """One part of all rows over all positions, `missing` where a row had no key; 0 in rows without it."""
        keys, pieces = self.k.shape[1], []
        for each, values in zip(self.rows, parts, strict=True):
            values = torch.zeros_like(each.allowed, dtype=self.first.q.dtype) if values is None else values
            pieces.append(_placed(values, each.start, keys, missing))
        heads = max(len(piece) for piece in pieces)
        return torch.cat([piece.expand(heads, -1, -1) for piece in pieces], dim=1)


def _rows(call: AttentionCall, start: int) -> Rows:
    everywhere = torch.ones(1, call.q.shape[1], call.k.shape[1], dtype=torch.bool)
    added = {term.name: term.values for term in call.terms}
    added |= {} if call.remainder is None else {_REMAINDER: call.remainder}
    allowed = everywhere if call.allowed is None else call.allowed
    return Rows(start, call.q, call.output, allowed, added, call.weights, call.sinks)


def _placed(values: Tensor, start: int, keys: int, missing: bool | float) -> Tensor:
    placed = values.new_full((*values.shape[:-1], keys), missing)
    placed[..., start : start + values.shape[-1]] = values
    return placed


def _check_same(so_far: Tensor, now: Tensor, call: AttentionCall) -> None:
    """Raises `InputError` where keys or values out of a cache are not those that went in."""
    if not so_far.numel():
        return
    changed = float((exact(so_far) - exact(now)).abs().max())
    if not changed <= _ROUNDINGS * call.epsilon * float(so_far.abs().max()):
        raise InputError(
            f"the cache of {call.module} does not keep its keys and values (one changes by {changed:.2g}): "
            "its rows cannot be shown over the same keys"
        )
