"""Find the head that finds each grammatical relation.

It stands beside the best fixed offset. A pair is found where the dependent attends most to its head (→),
where of all words its head attends most to it (←), or where its head attends to no other word more (⇐).
Beside it stands what the rule "so many words further on" finds, and how a head does on sentences that it
was not chosen on (held out). Words are those of the file, read with a blank between them.
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.session.option import argument, option, words
from attnscope.session.question import OfModel, named
from attnscope.session.which import Heads

if TYPE_CHECKING:
    from attnscope.session.request import Inputs
    from attnscope.verbs.dependencies.result import Dependencies  # noqa: F401

FILE = argument(
    "FILE", help="A treebank in the CoNLL-U format of Universal Dependencies.",
    brief="a treebank in the CoNLL-U format",
)  # fmt: skip
RELATION = option(
    "--relation", metavar="NAME", help="Show every head for this relation alone: nsubj, obj.",
    brief="every head for this relation alone: nsubj, obj",
)  # fmt: skip
LIMIT = option(
    "--limit", metavar="N", help="Read the first N sentences. Default: all.",
    brief="read the first N sentences",
)  # fmt: skip
BATCH = option("--batch", metavar="N", help="At most so many sentences, of one length, at once.")


@dataclass(frozen=True)
class Relate(Heads, OfModel["Dependencies"]):
    """Which head finds which grammatical relation of a treebank in CoNLL-U, beside the best fixed offset.

    `path` is its file. With a `relation` all heads are shown for that one. The first `limit` sentences
    are read, by default all, at most `batch` of one length at once.
    """

    METHODS = ("Model.dependencies",)
    READS = "path", "limit"
    KIND, ANSWER = "Dependencies", "attnscope.verbs.dependencies.answer:find_relations"

    path: Annotated[Path | str, FILE]
    relation: Annotated[str | None, RELATION] = None
    _: KW_ONLY
    limit: Annotated[int | None, LIMIT] = None
    batch: Annotated[int, BATCH] = 32

    def __post_init__(self) -> None:
        for name, value in (("--limit", self.limit), ("--batch", self.batch)):
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: it takes at least 1")
        incoming.check_there(self.path)
        super().__post_init__()

    @cached_property
    def bank(self) -> Any:
        """The sentences, read once."""
        return named("attnscope.verbs.dependencies.answer:read_asked")(self)

    def reads(self, inputs: "Inputs") -> "tuple[Relate, Inputs]":
        assert self.bank, "it is refused before a model is looked for"
        return self, inputs

    @property
    def read_again(self) -> tuple[str, ...] | None:
        """What is read, as words of a command; None of what is piped in."""
        return None if str(self.path) == "-" else words(self, self.READS)


FORMS = (Relate,)
