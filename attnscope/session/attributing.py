"""Which answer heads are measured by, and how many others it is held against: as plain data, checked."""

from dataclasses import dataclass

from attnscope.errors import InputError
from attnscope.session.selection import check_seed

OTHERS = 10
_MOST = 1000


@dataclass(frozen=True)
class Attributing:
    """`answer` names the answer that is meant, by default the likeliest; `others` are drawn with `seed`."""

    answer: str | None = None
    others: int = OTHERS
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.others <= _MOST:
            raise InputError(f"others is {self.others}: other answers to hold it against are 0 to {_MOST}")
        check_seed(self.seed, "seed")
