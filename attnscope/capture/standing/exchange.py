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
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.tokens import Tokens

AT_ONCE = 252 * 12  # tokens of all runs together: 252 are told apart by 10 sets; of more, halves are tried
_ONE_BY_ONE = 512  # the same where these runs cannot be one batch
_HALVES = 3  # random halves of a longer text, at the least; one where they cannot be one batch
_ORDINARY = {"bos", "eos", "sep", "cls", "mask", "unk", "decoder_start", "forced_bos", "forced_eos"}
_ENDS = ("_token_id", "_token_index")


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
    """The ids with other ordinary ids in the place of each set; those that are `fixed` stay."""
    ordinary = [each for each in dict.fromkeys(ids.tolist()) if each not in fixed]
    near = (other for each in ordinary for other in (each + 1, each - 1) if other >= 0 and other not in fixed)
    first, second = islice(dict.fromkeys((*ordinary, *near)), 2) if ordinary else (0, 0)
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
