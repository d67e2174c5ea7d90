"""Texts of a split as the model reads them, those of about one length together, filled up to one length.

The order is that of lengths, then of numbers: so the same split makes the same batches everywhere. What the
tokenizer makes of a text stands at the left; what fills up stands behind it, and the model is told so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnscope.model.inputs.text import Encoded
from attnscope.session.corpus.engine.interface import Text
from attnscope.tokens import Token, Tokens

_FILLED = {"input_ids": None, "attention_mask": 0, "token_type_ids": 0}  # by what, None: the padding token
_SPREAD, _MORE = 1.2, 2  # how much longer than the shortest text of a batch another one may be


@dataclass(frozen=True, eq=False)
class Ready:
    """A text as the model reads it alone."""

    text: Text
    encoded: Encoded

    @property
    def tokens(self) -> Tokens:
        return self.encoded.tokens

    @property
    def inputs(self) -> Mapping[str, Any]:
        return self.encoded.inputs  # type: ignore[no-any-return]

    @property
    def cut(self) -> bool:
        """Whether this is no more than the beginning of the text."""
        return any("cut to" in notice for notice in self.encoded.notices)

    def __len__(self) -> int:
        return len(self.tokens)


def pools(texts: Iterable[Ready], *, most: int, tokens: int) -> Iterator[list[Ready]]:
    """At `most` so many texts that follow one another, of so many `tokens` in all, or one longer text."""
    pool: list[Ready] = []
    held = 0
    for one in texts:
        if pool and (len(pool) == most or held + len(one) > tokens):
            yield pool
            pool, held = [], 0
        pool.append(one)
        held += len(one)
    if pool:
        yield pool


def batches(texts: Sequence[Ready], *, most: int, cells: int, padded: bool) -> Iterator[list[Ready]]:
    """Groups of at `most` so many texts whose weights are at most `cells`; of one length unless `padded`."""
    group: list[Ready] = []
    for one in sorted(texts, key=lambda one: (len(one), one.text.number)):
        if group and not _fits(group, one, most, cells, padded):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _fits(group: Sequence[Ready], one: Ready, most: int, cells: int, padded: bool) -> bool:
    shortest, length = len(group[0]), len(one)
    if len(group) == most or (len(group) + 1) * length**2 > cells:
        return False
    if length > (_SPREAD * shortest + _MORE if padded else shortest):
        return False
    return all(_alike(group[0].inputs, one.inputs, name, padded) for name in one.inputs)


def _alike(first: Mapping[str, Any], other: Mapping[str, Any], name: str, padded: bool) -> bool:
    if name not in first or first.keys() != other.keys():
        return False
    return (padded and name in _FILLED) or first[name].shape == other[name].shape


def joined(group: Sequence[Ready], padding: int) -> dict[str, Tensor]:
    """The inputs of a group, filled up with the token number `padding`."""
    most = max(map(len, group))
    inputs = {}
    for name in group[0].inputs:
        values = [one.inputs[name] for one in group]
        if name in _FILLED and any(value.shape[1] < most for value in values):
            by = _FILLED[name]
            values = [_filled(value, most, padding if by is None else by) for value in values]
        inputs[name] = torch.cat(values)
    if "attention_mask" not in inputs and len({len(one) for one in group}) > 1:
        lengths = torch.tensor([[len(one)] for one in group])
        mask = (torch.arange(most) < lengths).long()
        inputs["attention_mask"] = mask.to(inputs["input_ids"].device)
    return inputs


def _filled(values: Tensor, most: int, by: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, most - values.shape[1]), value=by)


def filled_up(tokens: Tokens, most: int, padding: int) -> Tokens:
    """The tokens of a text with those that fill it up."""
    fill = Token(padding, "", "", None, None, special=True, padding=True)
    return Tokens(tokens.texts, (*tokens.items, *(fill for _ in range(most - len(tokens)))))
