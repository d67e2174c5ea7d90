"""The mask in a text, in the spelling of the model that reads it.

A model with a mask token has one spelling for every mask; one that was taught to fill numbered gaps (T5 and
its kin) calls them `<extra_id_0>`, `<extra_id_1>` and so on, in the order of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from attnscope.errors import InputError
from attnscope.printable import printable

_ANY = re.compile(r"\[mask\]|<mask>", re.IGNORECASE)
_GAP = re.compile(r"<extra_id_([0-9]{1,6})>")


@dataclass(frozen=True)
class Respelled:
    """Texts with every mask as the model spells it, and the ids that its tokenizer has to read these as.

    `notice` says how the masks are spelled, where the user wrote them otherwise.
    """

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    notice: str | None

    def check(self, read: list[int], name: str) -> None:
        """Refuses a text in which the tokenizer did not read every mask as one."""
        for id in dict.fromkeys(self.ids):
            if (left := read.count(id)) < (wanted := self.ids.count(id)):
                raise InputError(f"{name} reads {left} of the {wanted} masks of the text as its mask token")


def with_own_masks(tokenizer: Any, texts: tuple[str, ...], name: str) -> Respelled:
    """`texts` as the model called `name` spells masks; `InputError` for a mask that it has no token for."""
    asked = sum(len(_ANY.findall(text)) for text in texts)
    if tokenizer.mask_token is not None:
        mask = str(tokenizer.mask_token)
        respelled = tuple(_ANY.sub(lambda _: mask, text) for text in texts)
        ids = (tokenizer.mask_token_id,) * sum(text.count(mask) for text in respelled)
        notice = f"the mask of {name} is spelled {printable(mask)}" if respelled != texts else None
        return Respelled(respelled, ids, notice)
    if any(_GAP.search(text) for text in texts) or asked:
        return _by_gap(tokenizer, texts, name, asked)
    return Respelled(texts, (), None)


def _by_gap(tokenizer: Any, texts: tuple[str, ...], name: str, asked: int) -> Respelled:
    """Masks as numbered gaps; a number that the user wrote is not given to another mask."""
    taken = {int(number) for text in texts for number in _GAP.findall(text)}
    if not asked:
        ids = [gap_id(tokenizer, f"<extra_id_{number}>") for number in sorted(taken)]
        return Respelled(texts, tuple(id for id in ids if id is not None), None)
    if gap_id(tokenizer, "<extra_id_0>") is None:
        raise InputError(f"{name} has no mask token: take the mask out of the text or choose a masked model")
    gaps = [f"<extra_id_{number}>" for number, _ in zip(_free(taken), range(asked), strict=False)]
    ids = [gap_id(tokenizer, gap) for gap in gaps]
    if None in ids:
        raise InputError(f"the text has {asked} masks: {name} ends before {gaps[ids.index(None)]}")
    following = iter(gaps)
    respelled = tuple(_ANY.sub(lambda _: next(following), text) for text in texts)
    spelled = f"mask of {name} is spelled" if asked == 1 else f"masks of {name} are spelled"
    return Respelled(respelled, tuple(id for id in ids if id is not None), f"the {spelled} {_listed(gaps)}")


def gap_id(tokenizer: Any, gap: str) -> int | None:
    """The id of a numbered gap; None where the tokenizer does not read it as one token."""
    ids = [int(id) for id in tokenizer(gap, add_special_tokens=False)["input_ids"]]
    pieces = [(id, str(piece).strip("▁ ")) for id, piece in zip(ids, _pieces(tokenizer, ids), strict=True)]
    read = [(id, piece) for id, piece in pieces if piece]  # the mark of a word's start may stand by itself
    return read[0][0] if [piece for _, piece in read] == [gap] else None


def _pieces(tokenizer: Any, ids: list[int]) -> list[str]:
    return list(tokenizer.convert_ids_to_tokens(ids))


def _free(taken: set[int]) -> Iterator[int]:
    return (number for number in count() if number not in taken)


def _listed(gaps: list[str]) -> str:
    return ", ".join(gaps if len(gaps) <= 3 else [gaps[0], "...", gaps[-1]])
