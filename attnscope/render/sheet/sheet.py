"""A sheet: a result as it is shown, said once for the terminal, pictures, pages, notebooks and tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import is_
from typing import Any, TypeVar

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.sheet.blocks import Beside, Block, flat
from attnscope.render.sheet.table import Table
from attnscope.results import Provenance, Verdict

Shown = TypeVar("Shown")
# where the classes are that hold what is shown, and not what was computed; a worked example is both
_OURS = ("attnscope.render.", "attnscope.results.worked")


@dataclass(frozen=True)
class Next:
    """What to ask next, in a few words, and the command that asks it: it runs when it is pasted."""

    question: str
    command: str

    def __str__(self) -> str:
        return f"Next: {self.question} {self.command}"


@dataclass(frozen=True)
class Sheet:
    """A result: one sentence that answers, the blocks that show it, its control, and what is proved.

    `answer` is one to three lines; `title` and `setting` say what the result is and which attention of which
    model it is of, which stands in files, above pictures and under -v. `texts` is what was read, and of a
    chat `messages` where those of each role stand. `control`
    says in a line what the numbers are held against, `notes` what limits the answer, a line each. `legend`
    explains words and marks of the blocks beside their columns' own (--legend); `details` are for -v.
    `departs` names what is not as it comes, such as `by words` or `seed 7`, for the line of proof, and
    `untouched` stands there where nothing is recomputed. `verdicts` are those of heads that the answer may
    name, `failed` names what else is not as the model has it; an answer that is `about_proof` says itself
    what is not certified.

    `table` has every row, and is made when a file wants it; `record` stands at the top of a file. `main` is
    the block that can stand alone on an Axes; where there is none, `whole` says why it takes a page.
    `summary` is told in one line beside the title. A page, which has room, shows `more` blocks, and opens on
    the head, query and key of `opens`.
    """

    title: str
    setting: str
    origins: tuple[Provenance, ...]
    answer: str
    blocks: tuple[Block | Beside, ...]
    table: Callable[[], Table]
    texts: tuple[str, ...] = ()
    messages: str = ""
    control: str = ""
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    proof: tuple[tuple[Verdict, str], ...] = ()
    departs: tuple[str, ...] = ()
    untouched: str = ""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    failed: str = ""
    about_proof: bool = False
    main: Block | None = None
    whole: str = "this picture has several panels"
    summary: tuple[str, ...] = ()
    record: tuple[tuple[str, object], ...] = ()
    next: Next | None = None
    more: tuple[Block, ...] = ()
    opens: dict[str, Any] = field(default_factory=dict)

    @property
    def every(self) -> tuple[Block, ...]:
        """All blocks, one after the other."""
        return tuple(one for each in self.blocks for one in flat(each))

    @property
    def told(self) -> tuple[str, ...]:
        """What is said below the blocks where there is room for all of it: in files, pictures and pages."""
        held = self.control and f"control: {self.control}"
        return tuple(each for each in (held, *self.notes, *self.legend) if each)


def harmless(shown: Shown) -> Shown:
    """A sheet, or a part of one, with nothing in any text of it that steers a terminal or turns a line."""
    made: Shown = _harmless(shown, {})
    return made


def _harmless(part: Any, done: dict[int, Any]) -> Any:
    """`harmless` of one part; a part that stands in several places stays one."""
    if isinstance(part, str):
        return printable(part, LEFT_TO_RIGHT)
    if type(part) is tuple:
        parts = tuple(_harmless(each, done) for each in part)
        return part if all(map(is_, part, parts)) else parts
    if isinstance(part, Table):
        return Table(*_harmless(part.columns, done))
    if not is_dataclass(part) or not type(part).__module__.startswith(_OURS):
        return part
    if id(part) not in done:
        texts = ((each.name, getattr(part, each.name)) for each in fields(part) if each.init)
        changed = {name: new for name, old in texts if (new := _harmless(old, done)) is not old}
        done[id(part)] = replace(part, **changed) if changed else part  # type: ignore[type-var]
    return done[id(part)]
