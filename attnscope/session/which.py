"""Fields that many questions share: which heads are meant, and how rows are looked at."""

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

Name = str | int  # of a token: its text or its position


@dataclass(frozen=True)
class OneHead(Attention):
    """One head. On the command line by default that of the articles."""

    WANTED: ClassVar[type[Wanted]] = OneWanted

    layer: Annotated[int | str | None, ONE_LAYER]
    head: Annotated[int | str | None, ONE_HEAD]

    @property
    def wanted(self) -> Wanted:
        return self.WANTED.of(self, self.layer, self.head)


@dataclass(frozen=True, kw_only=True)
class Heads(Attention):
    """Several heads, by default all."""

    layers: Annotated[Numbers, LAYERS] = None
    heads: Annotated[Numbers, HEADS] = None

    @property
    def wanted(self) -> Wanted:
        return Wanted.of(self, self.layers, self.heads)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """How rows and columns are looked at: by which unit, with special tokens or without."""

    words: Annotated[bool, WORDS] = False
    special: Annotated[str | None, SPECIAL] = None
    by: Annotated[str | None, BY] = None

    @property
    def looking(self) -> Looking:
        """How to look at weights."""
        return Looking(self.words, self.special, self.by)


class SurestTag:
    """The `query` may be left out of a model that tags tokens: it is the one whose tag is surest."""

    query: Name | None
    answer: str | None

    @property
    def plan_check(self) -> Any:
        """Without a query what refuses a model that tags none."""
        check = "attnscope.session.questions.answers:check_tags"
        return named(check) if self.query is None else None
