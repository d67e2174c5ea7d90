"""A text with sets of its tokens exchanged for others, so that what changes tells where each token went.

The sets are chosen so that each token is in half of them and no two tokens are in the same ones: a position
that changes with the sets of one token stands for it, and one that reads two tokens changes with more.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.tokens import Tokens
from attnscope.vocabulary import Standing

_MOSTLY = 2.0  # times all other changes: a row that is changed so much further by one token is that one's
_LEAST = 1e-5  # change of a query, key or value, relative to it, below which it is taken for rounding

Sets = Bool[Tensor, "set position"]
Words = Bool[Tensor, "set word"]

AT_ONCE = 252 * 12  # tokens of all runs together: 252 are told apart by 10 sets; of more, halves are tried
_ONE_BY_ONE = 512  # the same where these runs cannot be one batch
_HALVES = 3  # random halves of a longer text, at the least; one where they cannot be one batch
_ORDINARY = {"bos", "eos", "sep", "cls", "mask", "unk", "decoder_start", "forced_bos", "forced_eos"}
_ENDS = ("_token_id", "_token_index")


@dataclass(frozen=True, eq=False)
class Change:
    """Which positions of a layer's queries, keys or values changed with each set of tokens, and how far."""

    runs: int
    positions: int
    moved: Bool[Tensor, "set head position"]
    far: Float[Tensor, "set head position"]

    @classmethod
    def of(cls, rows: Float[Tensor, "run head position dim"]) -> "Change":
        """Of the text as it is, with each set exchanged, and as it is again, one behind the other."""
        moved, far = _moved(rows)
        return cls(rows.shape[0], rows.shape[2], moved.cpu(), far)

    @property
    def together(self) -> "Change":
        """The change of all heads as if they were one."""
        moved, far = self.moved.any(1, keepdim=True), self.far.amax(1, keepdim=True)
        return Change(self.runs, self.positions, moved, far)

    def stands(self, expected: Sets | None, words: Words | None = None) -> Standing:
        """What it tells that these positions changed with these sets.

        A single position that answers to nothing (as a sink may) can only be the one token that is left. Of
        positions that answer to their own token and to others, no head may answer to others alone, nor most
        of them to one other more than to all else together, as `words` tell where they are given.
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
        mostly = words is not None and self._mostly_another(expected, words)
        return Standing.OTHER if mostly or (lacking & further).any() else Standing.MIXED

    def _mostly_another(self, expected: Sets, words: Words) -> bool:
        """Whether in some head most positions answer to one other token more than to all else together.

        That is, they change further with every set that it is in than, by a factor, with any without it.
        """
        far = self.far.cpu()  # which is asked of few
        size = len(far) // 2  # sets that a token is in
        ordered = far.sort(0, descending=True).values
        furthest = far >= ordered[size - 1]
        clear = ordered[size - 1] > _MOSTLY * ordered[size]
        place = 2 ** torch.arange(len(words))  # a word as a number
        told = (furthest * place[:, None, None]).sum(0)
        own, every = ((each * place[:, None]).sum(0) for each in (expected, words))
        there = clear & torch.isin(told, every) & (told != own)
        return any(_most(head[answered]) for head, answered in zip(there, self.moved.any(0), strict=True))


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
    return (moved[:, :, None] == words[:, None]).all(0).any(1)


def _moved(
    rows: Float[Tensor, "run head position dim"],
) -> tuple[Bool[Tensor, "set head position"], Float[Tensor, "set head position"]]:
    """Which positions changed by more than rounding, and how far.

    By more, that is, than those of the same text do at another place. Nothing is said to have changed where a
    number is none.
    """
    if rows.shape[0] < 2:
        none = torch.zeros(0, rows.shape[1], rows.shape[2])
        return none.bool(), none
    size = rows[0].abs().float().amax((0, 2))
    apart = rows[1:].float() - rows[0].float()
    far, change = apart.norm(dim=3), apart.abs_().amax(3)
    numbers = bool(size.isfinite().all() & change.isfinite().all())  # of each row: a NaN is the largest
    change /= size.clamp_min(torch.finfo(torch.float32).tiny)
    least = max(_LEAST, 4 * torch.finfo(rows.dtype).eps, 10 * float(change[-1].max()))
    return (change[:-1] > least) & numbers, far[:-1]


@dataclass(frozen=True, eq=False)
class Exchanged:
    """The ids of one input as they are, with each set exchanged, and as they are; `sets` says which.

    `tokens` are what these ids stand for. `halves` is how many sets there are where they are halves drawn at
    random; 0 where they tell every token from every other.
    """

    tokens: Tokens
    ids: Int[Tensor, "run token"]
    sets: Bool[Tensor, "set token"]
    halves: int


def exchanged(
    inputs: Mapping[str, Any],
    texts: Mapping[str, Tokens | None],
    config: Any,
    row: int,
    most: int | None = AT_ONCE,
) -> dict[str, Exchanged]:
    """The texts of one row of `inputs` by the name of their ids; every one with as many sets.

    Where the sets that tell each token from every other would be more than `most` tokens together, or than
    some hundred where they cannot be one batch, they are random halves of the text. None: never.
    """
    ids = {
        name: inputs[name][row]
        for name, tokens in texts.items()
        if tokens is not None
        and isinstance(inputs.get(name), Tensor)
        and inputs[name].shape[1:] == (len(tokens),)
    }
    if not ids:
        return {}
    longest, fixed = max(map(len, ids.values())), _fixed_ids(config)
    most, least = (most, _HALVES) if most is None or _are_one_batch(inputs, ids) else (_ONE_BY_ONE, 1)
    sets, halves = sets_for(longest, most), 0
    if sets is None:
        halves = max(least, (most or 0) // longest - 2)
        sets = torch.rand(halves, longest, generator=torch.Generator().manual_seed(0)) < 0.5
    made = {}
    for name, mine in ids.items():
        tokens = texts[name]
        assert tokens is not None, "those were left out"
        made[name] = _with_others(tokens, mine, sets[:, : len(mine)], halves, fixed)
    return made


def sets_for(count: int, most: int | None = AT_ONCE) -> Bool[Tensor, "set token"] | None:
    """Sets of `count` tokens: each token in half of them, and no two in the same.

    None where these, the text as it is and the same once more are more than `most` tokens.
    """
    sets = next(each for each in range(2, 64) if math.comb(each, each // 2) >= count)
    if most is not None and (sets + 2) * count > most:
        return None
    codes = torch.zeros(count, sets, dtype=torch.bool)
    for token, members in enumerate(islice(combinations(range(sets), sets // 2), count)):
        codes[token, list(members)] = True
    return codes.T.contiguous()


def _with_others(
    tokens: Tokens, ids: Int[Tensor, " token"], sets: Bool[Tensor, "set token"], halves: int, fixed: set[int]
) -> Exchanged:
    ordinary = [each for each in dict.fromkeys(ids.tolist()) if each not in fixed]
    near = (other for each in ordinary for other in (each + 1, each - 1) if other >= 0 and other not in fixed)
    found = list(islice(dict.fromkeys((*ordinary, *near)), 2)) or [0]
    first, second = found[0], found[-1]
    sets = sets & torch.tensor([each not in fixed for each in ids.tolist()])
    others = torch.where(ids == first, second, first)
    runs = torch.cat([ids[None], torch.where(sets.to(ids.device), others, ids), ids[None]])
    return Exchanged(tokens, runs, sets, halves)


def _fixed_ids(config: Any) -> set[int]:
    """Ids that stand for something else than a word: padding, and the places of pictures and sounds."""
    fixed: set[int] = set()
    for name, value in vars(config).items():
        stem = next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), None)
        if stem is not None and stem not in _ORDINARY and isinstance(value, int):
            fixed.add(value)
        elif hasattr(value, "model_type"):
            fixed |= _fixed_ids(value)
    return fixed


def runs(inputs: Mapping[str, Any], texts: Mapping[str, Exchanged], row: int) -> Iterator[dict[str, Any]]:
    """The inputs of the row with every set exchanged: as one batch, or where that cannot be one by one."""
    ids = {name: each.ids for name, each in texts.items()}
    count, batch = len(next(iter(ids.values()))), len(inputs[next(iter(ids))])
    others = {name: value for name, value in inputs.items() if name not in ids}
    mine = {name: value[row : row + 1] for name, value in _tensors(others).items() if len(value) == batch}
    if _are_one_batch(inputs, ids):
        yield {**others, **ids, **{name: value.repeat_interleave(count, 0) for name, value in mine.items()}}
        return
    for run in range(count):
        yield {**others, **mine, **{name: each[run : run + 1] for name, each in ids.items()}}


def _are_one_batch(inputs: Mapping[str, Any], ids: Mapping[str, Any]) -> bool:
    """Whether all inputs beside the `ids` can be repeated: each has one row for each row of the ids."""
    batch = len(inputs[next(iter(ids))])
    tensors = _tensors({name: value for name, value in inputs.items() if name not in ids})
    return all(value.ndim < 3 and len(value) == batch for value in tensors.values())


def _tensors(inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: value for name, value in inputs.items() if isinstance(value, Tensor) and value.ndim}
