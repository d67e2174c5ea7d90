"""Encode texts: from one text or a pair to the model's inputs and `Tokens`.

Damage of a tokenizer's files often shows only when a text is read: a lost `[UNK]`, an id that no token has.
All calls of a tokenizer pass through `Tokenizer`, so no caller need know what the library raises.

A model with a mask token has one spelling for every mask; one that was taught to fill numbered gaps (T5 and
its kin) calls them `<extra_id_0>`, `<extra_id_1>` and so on, in the order of the text.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import Any

from attnscope.errors import InputError, calling
from attnscope.model.anatomy.positions import all_tables
from attnscope.printable import printable
from attnscope.tokens import Token, Tokens

REMEDY = "; its tokenizer files may be damaged: take them anew from where the model came from"
_NOTHING = object()
_ANY = re.compile(r"\[mask\]|<mask>", re.IGNORECASE)
_NUMBERED_GAP = re.compile(r"<extra_id_([0-9]{1,6})>")
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_NO_LIMIT = 10**9  # tokenizers that know no limit say a number like 10**30
_WORD_START = "▁"
_GAP = re.compile(r"<(extra_id|mask|unk)_[0-9]+>")  # what T5, Pegasus and their kin fill
_COLUMNS = ("ids", "tokens", "offsets", "sequence_ids", "special_tokens_mask", "word_ids")
_Row = tuple[int, str, tuple[int, int], int | None, int, int | None]


class Tokenizer:
    """Wraps a tokenizer of transformers (`own`) of the model called `name`.

    Raises `ModelUnavailableError` in one line where the library fails.
    """

    def __init__(self, own: Any, name: str) -> None:
        self._own, self._name = own, name

    @property
    def own(self) -> Any:
        """The library's tokenizer itself."""
        return self._own

    def __call__(self, *texts: str, **options: Any) -> Any:
        return self._asked("this text", self._own, *texts, **options)

    def __len__(self) -> int:
        return int(self._asked("its own length", self._own.__len__))

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # also where a copy is being made, which has nothing in it yet
            raise AttributeError(attribute)
        value = self._asked(attribute, getattr, self._own, attribute, _NOTHING)
        if value is _NOTHING:
            raise AttributeError(f"{type(self._own).__name__} has no {attribute}")
        if not callable(value):
            return value
        return lambda *given, **options: self._asked(attribute, value, *given, **options)

    def _asked(self, what: str, answer: Callable[..., Any], *given: Any, **options: Any) -> Any:
        with calling(f"{self._name}: its tokenizer fails at {what}", REMEDY):
            return answer(*given, **options)


class Settled(Tokenizer):
    """A tokenizer that nobody changes any more: its attributes are read once and cached."""

    def __getattr__(self, attribute: str) -> Any:
        value = super().__getattr__(attribute)
        if not callable(value):
            self.__dict__[attribute] = value  # later look-ups find it there and skip this method
        return value

    @classmethod
    def of(cls, tokenizer: Any) -> Any:
        """A settled copy of a `Tokenizer`; any other object unchanged."""
        return cls(tokenizer._own, tokenizer._name) if isinstance(tokenizer, Tokenizer) else tokenizer


@dataclass(frozen=True)
class Respelled:
    """Texts in the model's own mask spelling, and the ids that the masks in them must become.

    `notice` says how the masks are spelled, where the user wrote them otherwise.
    """

    texts: tuple[str, ...]
    ids: tuple[int, ...]
    notice: str | None

    def check(self, read: list[int], name: str) -> None:
        """Raises `InputError` where the tokenizer did not read every mask as a mask token."""
        for id in dict.fromkeys(self.ids):
            if (left := read.count(id)) < (wanted := self.ids.count(id)):
                raise InputError(f"{name} reads {left} of the {wanted} masks of the text as its mask token")


def with_own_masks(tokenizer: Any, texts: tuple[str, ...], name: str) -> Respelled:
    """The texts in the model's mask spelling; `InputError` for a mask that it has no token for."""
    asked = sum(len(_ANY.findall(text)) for text in texts)
    if tokenizer.mask_token is not None:
        mask = str(tokenizer.mask_token)
        respelled = tuple(_ANY.sub(lambda _: mask, text) for text in texts)
        ids = (tokenizer.mask_token_id,) * sum(text.count(mask) for text in respelled)
        notice = f"the mask of {name} is spelled {printable(mask)}" if respelled != texts else None
        return Respelled(respelled, ids, notice)
    if any(_NUMBERED_GAP.search(text) for text in texts) or asked:
        return _by_gap(tokenizer, texts, name, asked)
    return Respelled(texts, (), None)


def _by_gap(tokenizer: Any, texts: tuple[str, ...], name: str, asked: int) -> Respelled:
    """Masks as numbered gaps; numbers that the user wrote are not used again."""
    taken = {int(number) for text in texts for number in _NUMBERED_GAP.findall(text)}
    if not asked:
        ids = [gap_id(tokenizer, f"<extra_id_{number}>") for number in sorted(taken)]
        return Respelled(texts, tuple(id for id in ids if id is not None), None)
    if gap_id(tokenizer, "<extra_id_0>") is None:
        raise InputError(f"{name} has no mask token: take the mask out of the text or choose a masked model")
    free = (number for number in count() if number not in taken)
    gaps = [f"<extra_id_{number}>" for number, _ in zip(free, range(asked), strict=False)]
    ids = [gap_id(tokenizer, gap) for gap in gaps]
    if None in ids:
        raise InputError(f"the text has {asked} masks: {name} ends before {gaps[ids.index(None)]}")
    following = iter(gaps)
    respelled = tuple(_ANY.sub(lambda _: next(following), text) for text in texts)
    spelled = f"mask of {name} is spelled" if asked == 1 else f"masks of {name} are spelled"
    return Respelled(respelled, tuple(id for id in ids if id is not None), f"the {spelled} {_listed(gaps)}")


def gap_id(tokenizer: Any, gap: str) -> int | None:
    """Id of a numbered gap; None where the tokenizer does not read it as one token."""
    ids = [int(id) for id in tokenizer(gap, add_special_tokens=False)["input_ids"]]
    spelled = zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True)
    pieces = [(id, str(piece).strip("▁ ")) for id, piece in spelled]
    read = [(id, piece) for id, piece in pieces if piece]  # the mark of a word's start may stand by itself
    return read[0][0] if [piece for _, piece in read] == [gap] else None


def _listed(gaps: list[str]) -> str:
    return ", ".join(gaps if len(gaps) <= 3 else [gaps[0], "...", gaps[-1]])


@dataclass(frozen=True, eq=False)
class Encoded:
    """Model inputs, the tokens in them, and notices for the user.

    `mask_id` is the token of the first mask in the text, None where it has none.
    """

    inputs: Any
    tokens: Tokens
    notices: tuple[str, ...]
    mask_id: int | None = None


def encode(
    tokenizer: Any, texts: tuple[str, ...], *, name: str, limit: int | None, truncate: bool = False
) -> Encoded:
    """Model inputs of one text or a pair, for the model called `name`, at most `limit` tokens.

    Raises `InputError` for an empty text, one that is too long (unless `truncate`), and a mask that the model
    does not have.
    """
    if any(not text.strip() for text in texts):
        raise InputError("the text is empty" if len(texts) == 1 else "one text of the pair is empty")
    masked = with_own_masks(tokenizer, texts, name)
    encoded = encoded_texts(tokenizer, masked.texts, name=name, limit=limit, truncate=truncate, masked=masked)
    notices = (masked.notice, *encoded.notices) if masked.notice else encoded.notices
    begins, ids = tokenizer.bos_token_id, encoded.tokens.ids
    if begins is not None and ids[:2] == (begins, begins):
        piece = tokenizer.bos_token
        notices = (*notices, f"the text begins with {piece}, and the tokenizer of {name} puts one in front")
    return replace(encoded, notices=notices, mask_id=masked.ids[0] if masked.ids else None)


def encoded_texts(
    tokenizer: Any,
    texts: tuple[str, ...],
    *,
    name: str,
    limit: int | None,
    truncate: bool = False,
    masked: Respelled | None = None,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Encoded:
    """Model inputs of texts in the tokenizer's own mask spelling, cut to `limit` if `truncate`."""
    notices = []
    inputs = tokenizer(*texts, return_tensors="pt", **options)
    if masked is not None:
        masked.check(inputs["input_ids"][0].tolist(), name)
    length = inputs["input_ids"].shape[1]
    if limit is not None and length > limit:
        if not truncate:
            raise InputError(
                f"the text has {length} tokens, {name} reads at most {limit}: --truncate cuts it"
            )
        notices.append(f"the text has {length} tokens: cut to the {limit} that {name} reads")
        inputs = tokenizer(*texts, return_tensors="pt", truncation=True, max_length=limit, **options)
        if (left := inputs["input_ids"].shape[1]) > limit:
            raise InputError(
                f"the text cannot be cut to the {limit} tokens that {name} reads: {left} are left"
            )
    if length == 0:
        raise InputError(f"the text has no tokens for {name}")
    tokens = tokens_of(tokenizer, inputs, texts)
    if limit is not None and length > limit:
        tokens = replace(tokens, texts=_read_part(tokens))
    return Encoded(inputs, tokens, (*notices, *unspelled(tokenizer, tokens, name)))


def unspelled(tokenizer: Any, tokens: Tokens, name: str) -> tuple[str, ...]:
    """Notice about pieces that the model's vocabulary lacks; empty without any."""
    if not tokens.unknown:
        return ()
    unknown = ", ".join(f"'{piece}'" for piece in dict.fromkeys(tokens.unknown))
    return (f"{name} cannot spell {unknown}: read as {tokenizer.unk_token}",)


def _read_part(tokens: Tokens) -> tuple[str, ...]:
    spans = [(token.part, token.span[1]) for token in tokens.items if token.span is not None]
    ends = [max((end for part, end in spans if part == i), default=0) for i in range(len(tokens.texts))]
    return tuple(text[:end] for text, end in zip(tokens.texts, ends, strict=True))


def limit_of(tokenizer: Any, module: Any) -> int | None:
    """The most tokens that the model reads: the least of its position tables and its tokenizer's limit.

    Of an encoder-decoder put together from two models both halves count.
    """
    halves = (module.config.get_text_config(), getattr(module.config, "encoder", None))
    positions = (getattr(half, "max_position_embeddings", None) for half in halves)
    tables = (table.most for table in all_tables(module))
    named = (*positions, *tables, tokenizer.model_max_length)
    limits = [limit for limit in named if isinstance(limit, int) and 0 < limit < _NO_LIMIT]
    return min(limits, default=None)


def tokens_of(tokenizer: Any, inputs: Any, texts: tuple[str, ...]) -> Tokens:
    """Tokens of one encoded input, cut from `texts` by the tokenizer's own offsets.

    A tokenizer without offsets (not backed by the tokenizers library) leaves its own spelling as text.
    """
    special = special_ids(tokenizer)
    if getattr(inputs, "encodings", None):
        return tokens_from_encoding(inputs.encodings[0], texts, tokenizer.unk_token_id, special)
    ids = inputs["input_ids"][0].tolist()
    pieces = tokenizer.convert_ids_to_tokens(ids)
    spelled = [str(tokenizer.convert_tokens_to_string([piece])) for piece in pieces]
    unknown = [i for i, id in enumerate(ids) if id == tokenizer.unk_token_id and id not in special]
    for i, piece in zip(unknown, _unknown_pieces(tokenizer, texts, len(unknown)), strict=False):
        spelled[i] = piece
    items = (
        Token(id, piece, text, None, None, special=id in special, unknown=i in unknown)
        for i, (id, piece, text) in enumerate(zip(ids, pieces, spelled, strict=True))
    )
    return Tokens(texts, tuple(items))


def _unknown_pieces(tokenizer: Any, texts: tuple[str, ...], count: int) -> list[str]:
    pieces = [piece for text in texts for piece in tokenizer.tokenize(text)] if count else []
    unknown = [
        piece
        for piece, id in zip(pieces, tokenizer.convert_tokens_to_ids(pieces), strict=True)
        if id == tokenizer.unk_token_id
    ]
    return [str(piece).strip(_WORD_START) for piece in unknown] if len(unknown) == count else []


def special_ids(tokenizer: Any) -> Set[int]:
    """Ids of special tokens, without mask and unknown tokens and numbered gaps."""
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    ids = {id for id, piece in named if not _GAP.fullmatch(piece)}
    added, others = (
        {id for role in roles if (id := getattr(tokenizer, f"{role}_token_id", None)) is not None}
        for roles in (("bos", "eos", "cls", "sep", "pad"), ("mask", "unk"))
    )
    return ids - others | added  # GPT-2 has one token for end of text and unknown


def tokens_from_encoding(
    encoding: Any,
    texts: tuple[str, ...] = (),
    unknown_id: int | None = None,
    special: Set[int] = frozenset(),
) -> Tokens:
    """Tokens of one `Encoding` of the tokenizers library; without `texts` pieces are their texts.

    Ids in `special` are special wherever they stand, as are those that the tokenizer put around the text.
    """
    marked = zip(encoding.ids, encoding.special_tokens_mask, strict=True)
    special = special | {id for id, added in marked if added}
    # the library builds these lists at every access: read each once, not once a token
    columns = (getattr(encoding, name) for name in _COLUMNS)
    rows = zip(*columns, strict=True)
    return Tokens(texts, tuple(_token(row, texts, unknown_id, special) for row in rows))


def _token(row: _Row, texts: tuple[str, ...], unknown_id: int | None, special: Set[int]) -> Token:
    id, piece, (start, end), sequence, mark, word = row
    part, added = sequence or 0, bool(mark)
    if piece == _WORD_START and texts and texts[part][start:end].strip(_WORD_START + " "):
        end = start  # put in front of a word: the place that it is given belongs to the next character
    text = "" if added else texts[part][start:end] if texts else piece
    return Token(
        id=id,
        piece=piece,
        text=text,
        span=None if added else (start, end),
        word=word,
        part=part,
        special=id in special,
        # a user who types the unknown token itself has spelled it
        unknown=id == unknown_id and id not in special and text.strip() != piece,
    )
