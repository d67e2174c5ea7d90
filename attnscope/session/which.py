"""Dataclass fields that many questions share: which heads, and how weights are viewed."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from attnscope.session.question import named
from attnscope.session.wanted import (
    BY,
    HEADS,
    LAYERS,
    ONE_HEAD,
    ONE_LAYER,
    SPECIAL,
    WORDS,
    Attention,
    Looking,
    Numbers,
    OneWanted,
    Wanted,
)

Name = str | int  # a token: its text or its position


@dataclass(frozen=True)
class OneHead(Attention):
    """Fields for one head; the command line's default is L3 H11, or the middle of a smaller model."""

    WANTED: ClassVar[type[Wanted]] = OneWanted

    layer: Annotated[int | str | None, ONE_LAYER]
    head: Annotated[int | str | None, ONE_HEAD]

    @property
    def wanted(self) -> Wanted:
        return self.WANTED.of(self, self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class Heads(Attention):
    """Fields for several heads, by default all."""

    layers: Annotated[Numbers, LAYERS] = None
    heads: Annotated[Numbers, HEADS] = None

    @property
    def wanted(self) -> Wanted:
        return Wanted.of(self, self.layers, self.heads)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """Fields for how weights are viewed: by which unit, with or without special tokens."""

    words: Annotated[bool, WORDS] = False
    special: Annotated[str | None, SPECIAL] = None
    by: Annotated[str | None, BY] = None

    @property
    def looking(self) -> Looking:
        """The fields as a `Looking`."""
        return Looking(self.words, self.special, self.by)


class SurestTag:
    """Fields of a question whose `query` defaults, for a tagger, to the token with the surest tag."""

    query: Name | None
    answer: str | None

    @property
    def plan_check(self) -> Any:
        """Without a `query`, the check that refuses models other than taggers; else None."""
        check = "attnscope.session.questions.answers:check_tags"
        return named(check) if self.query is None else None
