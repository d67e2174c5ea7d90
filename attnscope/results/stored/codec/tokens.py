"""Tokens as plain values and back: every token as it was read, pictures and sounds among them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from attnscope.results.base.special import SpecialMass
from attnscope.results.stored.codec.damage import Damaged
from attnscope.results.stored.codec.record import Record
from attnscope.results.stored.codec.strict import Value
from attnscope.results.stored.codec.typed import restored
from attnscope.tokens import Frames, Patches, Token, Tokens

_STRETCHES: dict[str, Any] = {"patches": Patches, "frames": Frames}


def written(told: Tokens) -> dict[str, Value]:
    """How the model wrote the last of the texts itself; nothing where all was given."""
    return {"written": told.written} if told.written else {}


def tokens_document(told: Tokens, prefix: str = "") -> dict[str, Value]:
    """`texts` and `tokens`, each with `prefix`, and what only some tokens have."""
    return {
        f"{prefix}texts": list(told.texts),
        f"{prefix}tokens": tokens(told),
        **_further(told, prefix),
    }


def pair_document(
    query: Tokens, key: Tokens, names: tuple[str, str] = ("query_", "key_")
) -> dict[str, Value]:
    """The tokens of both axes; `shared_tokens` where they are one and the same."""
    first, second = names
    wrote = {f"{second}written": key.written} if query.written or key.written else {}
    return {
        f"{first}texts": list(query.texts),
        f"{second}texts": list(key.texts),
        f"{first}tokens": tokens(query),
        f"{second}tokens": tokens(key),
        f"{first}shared": query is key,
        **_further(query, first),
        **_further(key, second),
        **wrote,
    }


def tokens(told: Tokens) -> list[Value]:
    return [_token(told, position, item) for position, item in enumerate(told.items)]


def _token(told: Tokens, position: int, item: Token) -> dict[str, Value]:
    return {
        "position": position,
        "id": item.id if item.id >= 0 else None,
        "piece": item.piece,
        "text": item.text,
        "label": told.labels[position],
        "span": None if item.span is None else list(item.span),
        "word": item.word,
        "part": item.part,
        "special": item.special,
        "unknown": item.unknown,
    }


def _further(told: Tokens, prefix: str) -> dict[str, Value]:
    """Stretches of patches and frames, positions of what is only some of the input, and words as given."""
    names = {kind: name for name, kind in _STRETCHES.items()}
    stretches = [{"of": names[type(each)]} | asdict(each) for each in told.stretches]
    return {
        **({f"{prefix}stretches": stretches} if stretches else {}),
        **({f"{prefix}positions": list(told.numbers)} if told.numbers else {}),
        **({f"{prefix}words_given": True} if told.words_given else {}),
    }


def read_tokens(record: Record, prefix: str = "", wrote: str = "") -> Tokens:
    """The tokens that `prefix` names; `wrote` says how the model wrote the last text, where it did."""
    stretches = record.parts(f"{prefix}stretches") if f"{prefix}stretches" in record.told else []
    made = Tokens(
        texts=record.get(f"{prefix}texts", tuple[str, ...]),
        items=tuple(_read_token(each.told, prefix) for each in record.parts(f"{prefix}tokens")),
        stretches=tuple(_read_stretch(each) for each in stretches),
        written=wrote,
        numbers=record.get(f"{prefix}positions", tuple[int, ...], ()),
        words_given=record.get(f"{prefix}words_given", bool, False),
    )
    if len(made.positions) != len(made):
        raise Damaged(f"'{prefix}positions' are not as many as the tokens")
    if not all(_lies_within(each, made.texts) for each in made.items):
        raise Damaged(f"'{prefix}tokens' have a place outside of their text")
    return made


def _lies_within(token: Token, texts: tuple[str, ...]) -> bool:
    """Whether the span of a token lies in its text, as far as that is there."""
    if token.part < 0 or token.span is None:
        return token.part >= 0
    start, end = token.span
    return 0 <= start <= end and (token.part >= len(texts) or end <= len(texts[token.part]))


def _read_token(told: Any, prefix: str) -> Token:
    token: Token = restored(
        Token, {**told, "id": -1 if told.get("id") is None else told["id"]}, f"{prefix}tokens"
    )
    return token


def _read_stretch(record: Record) -> Patches | Frames:
    kind = _STRETCHES.get(record.get("of", str))
    if kind is None:
        raise Damaged("'of' is none of patches, frames")
    stretch: Patches | Frames = restored(kind, record.told, "stretches")
    if stretch.count < 0 or (isinstance(stretch, Patches) and len(stretch.positions) != stretch.count):
        raise Damaged("'stretches' do not fit together")
    return stretch


def read_pair(record: Record, names: tuple[str, str] = ("query_", "key_")) -> tuple[Tokens, Tokens]:
    """The tokens of both axes, one and the same where they were; their numbers are those of the axes."""
    first, second = names
    wrote = record.get("written", str, "")
    query = read_tokens(record, first, wrote)
    same_texts = record.get(f"{second}texts", tuple[str, ...]) == query.texts
    key = read_tokens(record, second, record.get(f"{second}written", str, wrote if same_texts else ""))
    shared = record.get(f"{first}shared", bool, before=query == key)
    if shared and query != key:
        raise Damaged(f"'{first}shared' is true of tokens that differ")
    key = query if shared else key
    record.sizes.update(query=len(query), key=len(key))
    return query, key


def special_mass(told: SpecialMass | None) -> Value:
    """The share of the weight on special tokens in all and by name, None where there are none."""
    return None if told is None else {"total": told.total, "by_name": dict(told.by_name)}


def read_special_mass(record: Record) -> SpecialMass | None:
    """The same as a file tells it; None where it tells of none."""
    if record.get("special_mass", Mapping[str, object] | None, None) is None:
        return None
    told = record.part("special_mass")
    return SpecialMass(told.get("total", float), tuple(told.get("by_name", dict[str, float]).items()))
