"""What a page may hold beside its result: heads in full, and the command that was typed."""

from dataclasses import dataclass, field

from attnscope.results import HeadAttention


@dataclass(frozen=True, eq=False)
class Beside:
    """`full` are heads of the same run with queries and keys; `command` is "" where nobody typed one."""

    full: tuple[HeadAttention, ...] = field(default=())
    command: str = ""


NOTHING = Beside()
