"""A sheet: a result as it is shown, said once for the terminal, pictures, pages, notebooks and tables."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from attnscope.render.sheet.blocks import Beside, Block, flat
from attnscope.render.sheet.table import Table
from attnscope.results import Provenance, Verdict


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
