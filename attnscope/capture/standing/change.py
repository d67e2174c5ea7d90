"""What became other when sets of tokens were exchanged: of one layer's queries, its keys, or its values."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.vocabulary import Standing

_LEAST = 1e-5  # change of a query, key or value, relative to it, below which it is taken for rounding

Sets = Bool[Tensor, "set position"]
Words = Bool[Tensor, "set word"]


@dataclass(frozen=True, eq=False)
class Change:
    """Which positions of a layer's queries, keys or values changed with each set of tokens."""

    runs: int
    positions: int
    moved: Bool[Tensor, "set head position"]

    @classmethod
    def of(cls, rows: Float[Tensor, "run head position dim"]) -> "Change":
        """Of the text as it is, with each set exchanged, and as it is again, one behind the other."""
        return cls(rows.shape[0], rows.shape[2], _moved(rows).cpu())

    @property
    def together(self) -> "Change":
        """The same of all heads as if they were one."""
        return Change(self.runs, self.positions, self.moved.any(1, keepdim=True))

    def stands(self, expected: Sets | None) -> Standing:
        """What it tells that these positions changed with these sets.

        A single position that answers to nothing (as a sink may) can only be the one token that is left. Of
        positions that answer to their own token and to others, no head may answer to others alone.
        """
        if expected is None or self.runs != len(expected) + 2 or not expected.any():
            return Standing.UNKNOWN
        moved = self.moved.any(1)
        if not moved.any():
            return Standing.UNKNOWN
        silent = expected.any(0) & ~moved.any(0)
        if silent.sum() < 2 and torch.equal(moved, expected & ~silent):
            return Standing.OWN
        if (expected & ~moved).any():
            return Standing.OTHER if (moved & ~expected).any() else Standing.UNKNOWN
        lacking, further = (expected[:, None] & ~self.moved).any(0), (self.moved & ~expected[:, None]).any(0)
        return Standing.OTHER if (lacking & further).any() else Standing.MIXED


def apart(key: Change, value: Change, expected: Sets | None, words: Words | None) -> bool:
    """Whether some key and its value are not of the same tokens: one of its own, the other of others alone.

    Or one of a single token, and the other of another or of several; where both are made of several tokens,
    as by convolutions, the first and last may be of one all the same: that most are of one is asked for. A
    word says which sets a token is in, and none of `words` contains another: what changed with the sets of
    one word and no others is that token's. Without such words a key is known to be of one token only where
    all keys are of those in their place. A side that answers to fewer sets than the other, and to no others,
    is taken for one that is hard to see.
    """
    keys, values = key.moved.any(1), value.moved.any(1)
    sets = words if words is not None else expected
    if sets is None or keys.shape != values.shape or len(keys) != len(sets) or torch.equal(keys, values):
        return False
    answered = keys.any(0) & values.any(0)
    if expected is not None and (answered & _of_others(keys, values, expected)).any():
        return True
    if words is None:
        standings = {key.stands(expected), value.stands(expected)}
        return standings == {Standing.OWN, Standing.MIXED}
    keys, values = keys[:, answered], values[:, answered]
    one_key, one_value = _of_one(keys, words), _of_one(values, words)
    other_value, other_key = (values & ~keys).any(0), (keys & ~values).any(0)
    if (one_key & one_value & other_value).any():
        return True
    mixed_value = _most(one_key) and (one_key & other_value).any()
    mixed_key = _most(one_value) and (one_value & other_key).any()
    return bool(mixed_value or mixed_key)


def _of_others(keys: Sets, values: Sets, expected: Sets) -> Bool[Tensor, " position"]:
    """The positions where one side answers to the token in its place, and the other to others alone."""
    own_key, own_value = ((~expected | moved).all(0) for moved in (keys, values))
    other_key, other_value = ((moved & ~expected).any(0) for moved in (keys, values))
    return (own_key & ~own_value & other_value) | (own_value & ~own_key & other_key)


def _most(positions: Bool[Tensor, " position"]) -> bool:
    return 2 * int(positions.sum()) > len(positions)


def _of_one(moved: Sets, words: Words) -> Bool[Tensor, " position"]:
    """The positions that changed with the sets of one token."""
    return (moved[:, :, None] == words[:, None]).all(0).any(1)


def _moved(rows: Float[Tensor, "run head position dim"]) -> Bool[Tensor, "set head position"]:
    """Which positions changed by more than rounding: by more than those of the same text do at another place.

    Nothing is said to have changed where a number is none.
    """
    if rows.shape[0] < 2:
        return torch.zeros(0, rows.shape[1], rows.shape[2], dtype=torch.bool)
    size = rows[0].abs().float().amax((0, 2))
    change = (rows[1:].float() - rows[0].float()).abs_().amax(3)
    numbers = bool(size.isfinite().all() & change.isfinite().all())  # of each row: a NaN is the largest
    change /= size.clamp_min(torch.finfo(torch.float32).tiny)
    least = max(_LEAST, 4 * torch.finfo(rows.dtype).eps, 10 * float(change[-1].max()))
    return (change[:-1] > least) & numbers
