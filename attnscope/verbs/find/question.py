"""Find heads that look from one token at another.

Without --from and --to all links between two words are ranked. Each stands beside texts with other
words. A head that looks so many tokens back does so whatever the words are: its weight in the controls
says so. `depends on` says where a weight stays in them: with the position, with the word, or with
neither (context). Patches of a picture and frames of a sound are exchanged as words are; what the model
writes itself is read at once. Of many texts (--texts, --fill) each has its controls, and what is told is
the mean over them, with its interval.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attnscope.errors import InputError, nearest
from attnscope.session.option import option
from attnscope.session.question import Question, named
from attnscope.session.selection import check_controls
from attnscope.session.wanted import APART
from attnscope.session.which import Heads, Looked, Name
from attnscope.vocabulary import Pattern, Purpose

if TYPE_CHECKING:
    from attnscope.session.request import Inputs
    from attnscope.verbs.find.needles import Fact
    from attnscope.verbs.find.result import (
        Finding,  # noqa: F401
        Links,  # noqa: F401
        Retrieval,  # noqa: F401
    )

RETRIEVAL, LENGTHS = "retrieval", (256,)
_CHOICE = "say what to find, one of these: --from and --to, --pattern, --like"
_HEAD = re.compile(r"[Ll]([0-9]{1,6})[ .,]?[Hh]([0-9]{1,6})")
_RETRIEVING = "attnscope.verbs.find.retrieving"

CONTROLS = option(
    "--controls", metavar="N",
    help="How many controls of the same shape each head is held against: the words of the text, those "
    "of one kind exchanged for one another; patches of a picture or frames of a sound.",
)  # fmt: skip
FROM = option(
    "--from", "--query", metavar="TOKEN",
    help='The token that looks, or several words ("the door"), of which the mean is taken: their text; '
    "the@5 begins at position 5, the#2 is the second one; 4-5, pos:first, pos:last, pos:all; of a chat "
    "a message (role:user#2); of a picture a patch (r3c5: row 3, column 5), of a sound a time (0.20s).",
    brief='what looks: its text, "the door", the@7, the#2, 4-5',
)  # fmt: skip
TO = option(
    "--to", "--key", metavar="TOKEN",
    help="What it looks at, named likewise; of several tokens the weights are summed.",
    brief="what is looked at, named likewise",
)  # fmt: skip
LIKE = option(
    "--like", metavar="L3H11",
    help="In place of tokens: likeness to this head, by divergence of rows.",
    brief="heads whose rows are like this head's",
)  # fmt: skip
FACTS = option(
    "--facts", metavar="FILE",
    help='What --pattern retrieval puts into the text: JSON lines {"needle": "The key of Al is red.", '
    '"question": "Question: what is the key of Al? Answer:", "answer": "red"}. Default: bundled facts.',
)  # fmt: skip
LENGTHS_OF = option(
    "--lengths", metavar="N,N,...", help="Of --pattern retrieval: tokens of a text. Default: 256."
)  # fmt: skip
NEEDLES = option("--needles", metavar="N", help="Of --pattern retrieval: how many facts for each length.")
PATTERN = option(
    "--pattern",
    metavar="previous|next|self|first|same|induction|punctuation|special|retrieval",
    help="In place of two tokens: the keys of every query that are meant. same: the query's own token "
    "elsewhere; induction: what followed it before. Of a picture previous and next are the patches to "
    "the left and to the right; same, induction and punctuation are of texts alone. retrieval: a fact "
    "put into TEXT (default: a bundled one) that a question at its end asks for.",
    brief="previous, next, same, induction, retrieval ...", brief_metavar="NAME",
)  # fmt: skip
SEED = option("--seed", metavar="N", help="Seed of the controls.")


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """How many controls there are, and what they are drawn with."""

    controls: Annotated[int, CONTROLS] = 100
    seed: Annotated[int, SEED] = 0


@dataclass(frozen=True)
class Find(Controlled, Looked, Heads, Question["Finding"]):
    """Heads ranked by what `query` gives to `key`, by a `pattern`, or `like` a head ("L3H11").

    Each stands beside the same number of `controls`, texts of the same shape with the words exchanged, or
    pictures and sounds with their patches or frames. Patterns are previous, next, self, first, same,
    induction, punctuation and special. With `words`, or without `special` tokens, rows are as `head` has
    them.
    """

    METHODS = ("Reading.find", "Prompted.find")
    KIND, TAKES, WRITES, RANKS = "Finding", APART, True, True
    ANSWER = "attnscope.verbs.find.answer:find"
    NAMES = "attnscope.verbs.find.answer:check_names"

    query: Annotated[Name | None, FROM] = None
    key: Annotated[Name | None, TO] = None
    _: KW_ONLY
    pattern: Annotated[str | None, PATTERN] = None
    like: Annotated[str | tuple[int, int] | None, LIKE] = None

    def __post_init__(self) -> None:
        pair = self.query is not None or self.key is not None
        if pair + (self.pattern is not None) + (self.like is not None) != 1:
            raise InputError(_CHOICE)
        if pair and (self.query is None or self.key is None):
            raise InputError("--from and --to go together: which token looks, and at which")
        if self.pattern is not None and self.pattern not in list(Pattern):
            near = nearest(self.pattern, Pattern)
            meant = f"did you mean {near[0]}? There are " if near else ""
            raise InputError(f"no pattern '{self.pattern}': {meant}{', '.join(Pattern)}")
        check_controls(self.controls)
        self.like_head  # noqa: B018 - refused in its words
        super().__post_init__()

    @property
    def like_head(self) -> tuple[int, int] | None:
        """Layer and head that others are to be like."""
        if not isinstance(self.like, str):
            return self.like
        match = _HEAD.fullmatch(self.like.strip())
        if match is None:
            raise InputError(f"--like '{self.like}' names no head: write it as L3H11")
        return int(match[1]), int(match[2])

    def ranked(self, result: Any) -> bool:
        return True

    @property
    def over(self) -> str:
        if self.pattern is not None:
            return f"has the pattern {self.pattern}"
        if self.like_head is not None:
            return "is like L{} H{}".format(*self.like_head)
        query, key = (f"“{each}”" if str(each).isalpha() else each for each in (self.query, self.key))
        return f"looks from {query} at {key}"

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        return f"{options[0]} goes with --pattern {RETRIEVAL}"


@dataclass(frozen=True, kw_only=True)
class FindLinks(Controlled, Heads, Question["Links"]):
    """Links between two words that no position, distance, key or evenness explains, of all heads.

    They are held against `controls`, the text with its words in other orders.
    """

    METHODS = ("Reading.links", "Prompted.links")
    KIND, WRITES, RANKS, TAKES = "Links", True, True, APART
    ANSWER = "attnscope.verbs.find.answer:links_in"

    def __post_init__(self) -> None:
        check_controls(self.controls)
        super().__post_init__()

    @property
    def over(self) -> str:
        return "what is linked"

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return not {"query", "key", "pattern", "like"} & {*given}

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        if {"--by", "--words", "--special"} & {*options}:
            return "links are sought between tokens: leave --by, --words and --special out"
        return f"{options[0]} goes with --pattern {RETRIEVAL}"


@dataclass(frozen=True)
class Retrieve(Heads, Question["Retrieval"]):
    """Which heads fetch a fact that is asked for, out of texts of these `lengths` in tokens.

    So many `needles` for each length, a fact with its question and answer, stand at seeded depths of the
    `text`; without `facts` and a text bundled ones are taken. Beside each head stands how often it looks
    at another fact, and what the model answers without the heads that are named.
    """

    METHODS = ("Model.retrieval",)
    KIND, ANSWER, OWN_TEXTS, PURPOSE = "Retrieval", f"{_RETRIEVING}:retrieve", True, Purpose.ANSWER
    AGAIN = False  # of texts of its own

    text: str | None = None
    facts: Annotated[str | Path | Sequence["Fact"] | None, FACTS] = None
    _: KW_ONLY
    pattern: Annotated[str, PATTERN] = field(default=RETRIEVAL, init=False)
    lengths: Annotated[str | Sequence[int] | None, LENGTHS_OF] = None
    needles: Annotated[int, NEEDLES] = 20
    seed: Annotated[int, SEED] = 0

    def __post_init__(self) -> None:
        if min(self.counts, default=0) < 1:
            raise InputError("--lengths are numbers of tokens: 512,2048")
        if not 2 <= self.needles <= 500:
            raise InputError(f"--needles {self.needles}: give 2 to 500, for each length")
        super().__post_init__()

    @property
    def counts(self) -> tuple[int, ...]:
        """The lengths in tokens."""
        if not isinstance(self.lengths, str):
            return LENGTHS if self.lengths is None else tuple(self.lengths)
        try:
            return tuple(int(each) for each in self.lengths.split(","))
        except ValueError:
            raise InputError(f"--lengths '{self.lengths}': numbers of tokens, 512,2048") from None

    def reads(self, inputs: "Inputs") -> "tuple[Retrieve, Inputs]":
        told = ("ids", "image", "audio", "chat", "target")
        if others := [name for name in told if getattr(inputs, name) is not None]:
            raise InputError(f"--pattern {RETRIEVAL} puts facts into one TEXT: leave --{others[0]} out")
        text = inputs.text if self.text is None else self.text
        asked = replace(self, text=text, facts=named(f"{_RETRIEVING}:facts_of")(self.facts))
        return asked, named(f"{_RETRIEVING}:first")(asked)

    @property
    def plan_check(self) -> Any:
        return named(f"{_RETRIEVING}:check_retrieving")

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return given.get("pattern") == RETRIEVAL

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        if {"--by", "--words", "--special", "--controls"} & {*options}:
            return f"--pattern {RETRIEVAL} has its own controls, by tokens: leave {options[0]} out"
        return f"--pattern {RETRIEVAL} is no pair and no likeness: leave {options[0]} out"


FORMS = (Retrieve, FindLinks, Find)
