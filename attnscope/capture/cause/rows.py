"""Change rows of a tensor or tokens of a text, so that the pattern of changes tells where each one goes.

A row is told from others by a code word. Sets of a text's tokens are exchanged for others; they are chosen so
that each token is in half of them and no two tokens are in the same ones: a position that changes with the
sets of one token stands for it, and one that reads two tokens changes with more.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice
from math import comb
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.tokens import Tokens
from attnscope.vocabulary import Standing

MOST = 3432  # rows that words of fourteen bits tell apart
_LARGE = 32.0  # times a tensor: noise that a layer scale of 1e-5 leaves to be seen in the hidden state
_ROUNDING = 4  # machine epsilons of a row's largest number; two runs of the same shapes differ by less
_GROUPED = 64  # where rows are multiplied in other groups, as experts do, but no more than 1e-5
_COARSE = 1e-4  # a machine epsilon above it is that of half precision
_MANY = 0.25  # of a row's features
_LITTLE = 1e-2  # of a row's largest number: another order that changes less is no other row

Rows = Float[Tensor, "row feature"]


def words(count: int) -> Bool[Tensor, "row bit"]:
    """`count` binary code words with equally many ones, in random order, so that none contains another."""
    bits = next(each for each in range(4, 64, 2) if comb(each, each // 2) >= count)
    made = torch.zeros(count, bits, dtype=torch.bool)
    there = list(islice(combinations(range(bits), bits // 2), MOST))
    order = torch.randperm(len(there), generator=torch.Generator().manual_seed(1)).tolist()
    for row, place in enumerate(order[:count]):
        made[row, list(there[place])] = True
    return made


def halves(count: int, seed: int) -> Bool[Tensor, " row"]:
    """Random mask of about half of the rows; of two rows or more, neither none nor all."""
    drawn = torch.rand(count, generator=torch.Generator().manual_seed(seed)) < 0.5
    if count > 1:
        drawn[0], drawn[-1] = True, False
    return drawn if count > 1 else torch.ones(1, dtype=torch.bool)


def noise(like: Float[Tensor, "*axis"], seed: int, size: float) -> Float[Tensor, "*axis"]:
    """Random normal numbers times 32 `size`, in the shape and dtype of `like`."""
    return _drawn(like.shape, seed).to(like) * (_LARGE * size)


@lru_cache(maxsize=8)
def _drawn(shape: torch.Size, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def size_of(values: Tensor) -> float:
    """Root mean square of the finite values, 1 where that is about 0."""
    size = float(values[values.isfinite()].float().pow(2).mean().sqrt())
    return size if size > 1e-6 else 1.0


def shuffled(values: Float[Tensor, "*axis"], seed: int) -> Float[Tensor, "*axis"]:
    """Each row with its features permuted, which keeps its norm, mean and range.

    So a norm over the whole row, or one scale for a whole tensor of whole numbers, carries the change to no
    other row. A row that this leaves nearly as it is gets noise.
    """
    generator = torch.Generator().manual_seed(seed)
    dim = values.shape[-1]
    new = (
        values[..., torch.randperm(dim, generator=generator).roll(1).to(values.device)] if dim > 3 else values
    )
    largest = values.float().abs().amax(-1, keepdim=True).clamp_min(1e-20)
    same = (new - values).float().abs().amax(-1, keepdim=True) < _LITTLE * largest
    return torch.where(same, values + noise(values, seed, size_of(values)), new)


def changed(now: Rows, before: Rows, epsilon: float = 0.0) -> Bool[Tensor, " row"]:
    """Mask of the rows that differ by more than rounding in the tensors' own dtype; NaN counts as 0.

    `epsilon` is that of whole numbers on the way, where there are some. In half precision a row has changed
    too where many of its features have, each compared with itself: beside one feature of a thousand times the
    size of all others, as the first token of a trained model has it, no change is large.
    """
    own = torch.finfo(before.dtype).eps
    least = max(_ROUNDING * max(epsilon, own), min(_GROUPED * own, 1e-5))
    now, before = torch.nan_to_num(now.float()), torch.nan_to_num(before.float())
    change, size = (now - before).abs(), before.abs()
    there = change.amax(1) > least * size.amax(1).clamp_min(1e-30)
    if not epsilon and own > _COARSE:
        there |= (change > least * size).float().mean(1) > _MANY
    return there.cpu()


def is_coarse(tensor: Tensor) -> bool:
    """Whether the tensor is of half precision."""
    return torch.finfo(tensor.dtype).eps > _COARSE


@dataclass(frozen=True)
class Shape:
    """Sizes of an attention's output: batch entries, heads, queries and features of a head."""

    batch: int
    heads: int
    queries: int
    dim: int

    @property
    def rows(self) -> int:
        return self.batch * self.queries


def as_rows(answer: Float[Tensor, "batch head query dim"]) -> Float[Tensor, "row feature"]:
    """The attention output as one row for each query of each batch entry, heads side by side."""
    return answer.transpose(1, 2).flatten(2).flatten(0, 1)


def layouts(result: Tensor, shape: Shape, rows: int) -> Iterator[Tensor]:
    """Views of `result` as `row feature` with so many rows, in each layout that fits, the likeliest first."""
    return (each for each in _ways(result, shape, rows) if len(each) == rows)


def _ways(result: Tensor, shape: Shape, rows: int) -> Iterator[Tensor]:
    if result.ndim > 1 and result[..., 0].numel() == rows:
        yield result.flatten(0, -2)
    if result.ndim == 4 and result.shape[:3] == (shape.batch, shape.heads, shape.queries):
        yield as_rows(result)
    if result.ndim == 4 and result.shape[:3] == (shape.batch, shape.queries, shape.heads):
        yield result.flatten(2).flatten(0, 1)
    if result.ndim == 4 and result.shape[0] * result.shape[2] * result.shape[3] == rows:
        yield result.flatten(2).transpose(1, 2).flatten(0, 1)
    if result.ndim == 3 and result.shape[::2] == (shape.batch, shape.queries):
        yield result.transpose(1, 2).flatten(0, 1)
    if result.ndim == 3 and result.shape[:2] == (shape.queries, shape.batch) and shape.batch > 1:
        yield result.transpose(0, 1).flatten(0, 1)
    if result.ndim == 2 and result.shape[0] == shape.batch and result.shape[1] % shape.queries == 0:
        yield result.view(rows, -1) if rows == shape.rows else result


def decoded(patterns: Bool[Tensor, "row bit"], code: Bool[Tensor, "coded bit"]) -> Int[Tensor, " row"] | None:
    """Index of the code word that each pattern equals, -1 for all zeros; None if any pattern is no word."""
    table = {tuple(word): row for row, word in enumerate(code.tolist())}
    found = [table.get(tuple(each), -1 if not any(each) else None) for each in patterns.tolist()]
    return None if None in found else torch.tensor(found)


def slices(difference: Float[Tensor, "row feature"], heads: int) -> Float[Tensor, "row head"]:
    """Share of each row's absolute change in the columns of each head; shares of a row add up to 1."""
    mass = difference.float().abs().reshape(len(difference), heads, -1).sum(2).cpu()
    share: Tensor = mass / mass.sum(1, keepdim=True).clamp_min(1e-30)
    return share


_MOSTLY = 2.0  # times all other changes: a row that is changed so much further by one token is that one's
_LEAST = 1e-5  # change of a query, key or value, relative to it, below which it is taken for rounding

Sets = Bool[Tensor, "set position"]
Words = Bool[Tensor, "set word"]

AT_ONCE = 252 * 12  # tokens of all runs together: 252 are told apart by 10 sets; of more, halves are tried
_ONE_BY_ONE = 512  # tokens, where these runs cannot be one batch
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
        """Compare runs stacked in this order: the text, the text with each set exchanged, the text again."""
        moved, far = _moved(rows)
        return cls(rows.shape[0], rows.shape[2], moved.cpu(), far)

    @property
    def together(self) -> "Change":
        """The change of all heads merged into one head."""
        moved, far = self.moved.any(1, keepdim=True), self.far.amax(1, keepdim=True)
        return Change(self.runs, self.positions, moved, far)

    def stands(self, expected: Sets | None, words: Words | None = None) -> Standing:
        """Standing of these positions (own token, others, mixed), by the sets that should change each.

        A single position that never changes (as a sink may) can only be the one token that is left. Of
        positions that change with their own token and with others, no head may follow others alone, nor most
        positions of a head one other more than all else together, as `words` tell where they are given.
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
        """Whether in some head most positions change with one other token more than with all else together.

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
    """Whether some key and its value are made of different tokens.

    One of its own token, and the other of others alone. Or one of a single token, and the other of another or
    of several; where both are made of several tokens, as by convolutions, the first and last may be of one
    all the same: most must be of one. A word says which sets a token is in, and none of `words` contains
    another: what changed with the sets of one word and no others is that token's. Without such words a key is
    known to be of one token only where all keys are of those in their place. A side that changes with fewer
    sets than the other, and with no others, is taken for one that is hard to see.
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
    """Mask of positions where key or value is of the token in place, and the other only of other tokens."""
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
    """Mask of the positions that changed by more than rounding, and the norm of each change.

    The limit is also above what two runs of the same text differ by. Nothing counts as changed where a
    number is not finite.
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
    """Token ids of one input, run by run: the original, each of `sets` exchanged, the original again.

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
    """For each named id tensor, the variants of one row with sets of tokens exchanged; as many sets for each.

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
    """Mask `set token` for `count` tokens: each token is in half of the sets, and no two in the same ones.

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
    """Ids in the config that stand for no word: padding, and placeholders of pictures and sounds."""
    fixed: set[int] = set()
    for name, value in vars(config).items():
        stem = next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), None)
        if stem is not None and stem not in _ORDINARY and isinstance(value, int):
            fixed.add(value)
        elif hasattr(value, "model_type"):
            fixed |= _fixed_ids(value)
    return fixed


def runs(inputs: Mapping[str, Any], texts: Mapping[str, Exchanged], row: int) -> Iterator[dict[str, Any]]:
    """Model inputs with every set of the row exchanged: one batch, or one by one where that cannot be."""
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
    """Whether all tensors beside the `ids` have one entry per batch row, so that they can be repeated."""
    batch = len(inputs[next(iter(ids))])
    tensors = _tensors({name: value for name, value in inputs.items() if name not in ids})
    return all(value.ndim < 3 and len(value) == batch for value in tensors.values())


def _tensors(inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: value for name, value in inputs.items() if isinstance(value, Tensor) and value.ndim}
