"""One call of the program: its arguments, and the surroundings that it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Stream(StrEnum):
    """What stands in place of an ordinary standard stream."""

    KEPT = "kept"
    CLOSED = "closed"
    FULL = "full"  # standard output and error: no space left
    BROKEN = "broken"  # standard output and error: nobody reads
    WRITABLE = "writable"  # standard input: it can be written and not read


@dataclass(frozen=True)
class Invocation:
    """`argv` without the program's name, its strings as Python decodes them: bytes that are no UTF-8 are
    lone surrogates. The current folder has been filled by the kind that made this.

    `cold` is a process of its own from the console script, where all others are forks of a warm one;
    `interrupt` is when Ctrl-C comes, in seconds after the start, `kill` when it is ended without being asked;
    `file_limit` how many bytes a file may take;
    `unprivileged` is run by nobody, who can be denied a file; `homeless` has its current folder deleted;
    `piped` is what the pipe of number 63 holds, where there is one.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    stdin: bytes | Stream = b""
    stdout: Stream = Stream.KEPT
    stderr: Stream = Stream.KEPT
    cold: bool = False
    interrupt: float | None = None
    kill: float | None = None
    file_limit: int | None = None
    unprivileged: bool = False
    homeless: bool = False
    piped: bytes | None = None

    @property
    def asks_help(self) -> bool:
        """Whether it ends in something else than a result."""
        spared = {"--help", "-h", "--help-all", "--version", "--install-completion", "--show-completion"}
        return not self.argv or bool(spared & set(self.argv))

    @property
    def json(self) -> bool:
        return "--json" in self.argv

    @property
    def verbose(self) -> bool:
        return bool({"-v", "--verbose"} & set(self.argv))

    @property
    def quiet(self) -> bool:
        return bool({"-q", "--quiet"} & set(self.argv))

    @property
    def targets(self) -> tuple[Path, ...]:
        """The files that it asks for by name."""
        named = [
            value
            for option, value in zip(self.argv, self.argv[1:], strict=False)
            if option in ("-o", "--out")
        ]
        glued = [
            word[len(option) :] for word in self.argv for option in ("-o", "--out=") if _glued(word, option)
        ]
        return tuple(Path(name) for name in (*named, *glued))


def _glued(word: str, option: str) -> bool:
    """Whether an option and its value are one word: `-oFILE`, `--out=FILE`."""
    return word.startswith(option) and len(word) > len(option)


@dataclass(frozen=True)
class Outcome:
    """What came of an invocation.

    `code` is negative for a signal. `stopped` says which limit it was stopped by, `stack` where it was then
    (or where it crashed). `left` are paths that were not there before, folders with a slash behind them;
    `temporary` the same in the folder for temporary files, `canaries` the planted codes that ran.
    """

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    stopped: str = ""
    stack: str = ""
    left: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    canaries: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
