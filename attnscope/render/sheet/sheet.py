"""A sheet: a result as it is shown, said once for the terminal, pictures, pages, notebooks and tables."""

from collections.abc import Callable
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
class Sheet:
    """A result: what it is and of what, one sentence that answers, the blocks, and what is proved.

    `setting` is which attention of which model, `texts` what was read. `table` has every row, and is made
    when a file wants it; `record` stands at the top of a file. `main` is the block that can stand alone on
    an Axes; where there is none, `whole` says why it takes a page. `summary` is told in one line beside the
    title, `next` is a command that leads on. A page, which has room, shows `more` blocks, and opens on the
    head, query and key of `opens`.
    """

    title: str
    setting: str
    origins: tuple[Provenance, ...]
    answer: str
    blocks: tuple[Block | Beside, ...]
    table: Callable[[], Table]
    texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    proof: tuple[tuple[Verdict, str], ...] = ()
    main: Block | None = None
    whole: str = "this picture has several panels"
    summary: tuple[str, ...] = ()
    record: tuple[tuple[str, object], ...] = ()
    next: str = ""
    more: tuple[Block, ...] = ()
    opens: dict[str, Any] = field(default_factory=dict)

    @property
    def every(self) -> tuple[Block, ...]:
        """All blocks, one after the other."""
        return tuple(one for each in self.blocks for one in flat(each))


def harmless(shown: Shown) -> Shown:
    """A sheet, or a part of one, with nothing in any text of it that steers a terminal or turns a line."""
    made: Shown = _harmless(shown, {})
    return made


def _harmless(part: Any, done: dict[int, Any]) -> Any:
    """The same of one part; a part that stands in several places stays one."""
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
