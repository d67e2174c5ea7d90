"""Output streams: results go to standard output, notices to standard error, files whole or not at all.

A stream may be closed, full or without reader. A failed write to standard output is an error; a lost notice
is not. The typed command is kept here too, for files that tell how they were made.
"""

import errno
import io
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from attnscope import incoming
from attnscope.errors import CertificateError, InputError, NobodyReadsError, one_line
from attnscope.printable import printable
from attnscope.printable import word as quoted
from attnscope.process.ending import undone_by_a_signal
from attnscope.process.machine import lean_loading
from attnscope.session.option import OUT, option

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from attnscope.cli.options import Delivery
    from attnscope.render.sheets import Focus
    from attnscope.render.web.room import Beside
    from attnscope.results import Result


class Narration(io.RawIOBase):
    """Standard error stream whose writes never fail, even where nobody reads it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream  # closes what is below when nobody holds it
        self._below = getattr(stream.buffer, "raw", stream.buffer)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._below.fileno())

    def isatty(self) -> bool:
        return bool(self._below.isatty())

    def write(self, data: Any) -> int:
        try:
            written: int | None = self._below.write(data)
            if written is not None:
                return written
            self.lost(BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
        except OSError as error:
            self.lost(error)
        return len(data)

    def lost(self, error: OSError) -> None:
        """Handle bytes that could not be written; here, drop them."""


class Results(Narration):
    """Standard output stream: the first failed write raises an error, later ones are dropped.

    On Windows a broken pipe is reported as an invalid argument.
    """

    failed = False

    def lost(self, error: OSError) -> None:
        """Raise `NobodyReadsError` for a broken pipe, `InputError` for any other failure."""
        if self.failed:
            return
        self.failed = True
        if isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL):
            raise NobodyReadsError from error
        raise InputError(f"cannot write the output: {error.strerror}") from error


def say(line: str, stream: TextIO | None = None) -> None:
    """Print one line to standard error or `stream`, without terminal control characters."""
    print(printable(line), file=stream or sys.stderr)


def guard() -> None:
    """Replace `sys.stdout` and `sys.stderr` by guarded streams; closed ones are opened on the null device."""
    _occupy()
    sys.stdout = _guarded(sys.stdout, 1, Results)
    sys.stderr = _guarded(sys.stderr, 2, Narration)


@contextmanager
def ours_alone() -> Iterator[None]:
    """Context manager: discards what libraries write to file descriptor 1, past Python."""
    sys.stdout.flush()
    try:
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # no more files may be open
        yield
        return
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _occupy() -> None:
    """Open closed descriptors 0 to 2 on the null device, so that no later file gets their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _guarded(stream: Any, number: int, kind: type[Narration]) -> io.TextIOWrapper:
    """Text stream that writes through `kind`; characters that the encoding lacks become question marks."""
    stream = stream or open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open as long as the process
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def summary(codes: Mapping[int, int], result: "Result | None" = None) -> str:
    """Last JSON record of many texts: counts, failed lines and the common exit code.

    `codes` has the exit code of every line by its number; the `result` over all lines follows, if given.
    """
    failed = [number for number, code in codes.items() if code]
    counts = {"lines": len(codes), "answered": len(codes) - len(failed), "failed": failed}
    told = {"summary": {**counts, "exit_code": max(codes.values())}}
    if result is None:
        return json.dumps(told)
    from attnscope.render.files import as_json_line

    return as_json_line(result, told)


@dataclass(frozen=True)
class NumberedText:
    """One text of many, with its number and its name (`texts.txt:7`), for its answer's heading."""

    name: str
    number: int
    text: str

    def heading(self, width: int) -> "list[Text]":
        """The heading above the answer on a screen."""
        from rich.text import Text

        rule = "─" * max(2, min(width, 80) - len(self.name) - 4)
        return [Text(), Text.assemble("── ", (self.name, "bold"), f" {rule}", no_wrap=True)]

    def document(self, result: "Result") -> str:
        """The answer as one JSON line that begins with the text's number and the text."""
        from attnscope.render.files import as_json_line

        return as_json_line(result, {"line": self.number, "text": self.text})


QUIET = option("--quiet", "-q", help="The answer and what is proved alone; with -o the files alone.")
VERBOSE = option(
    "--verbose", "-v", under=OUT,
    help="Everything: all columns, how the model was run, certificates in full, what was loaded.",
    brief="all columns, hashes, certificate, what was loaded",
)  # fmt: skip
LEGEND = option(
    "--legend", under=OUT,
    help="Say what the columns and marks on this screen mean, with their papers.",
    brief="what the columns mean, with the papers",
)  # fmt: skip
INPUT_LIMIT = option(
    "--input-limit", metavar="SIZE",
    help="How much is read at most from a pipe, a device or standard input, such as 2GB. Files have no limit "
    "but memory. Default: ATTNSCOPE_INPUT_LIMIT, else 256MB.",
)  # fmt: skip
THEME = option(
    "--theme", metavar="auto|light|dark",
    help="Colours for a light or a dark terminal. Default: ATTNSCOPE_THEME, else COLORFGBG.",
)  # fmt: skip
NARROWEST = 40
_CLEARED = b"\r\x1b[2K\x1b[?25h"  # the spinner's line, and the cursor that it hides


class Output:
    """Standard output and error of one run; also listens to its session. `quiet` drops notices."""

    PANEL = "Besides"
    BEYOND = "colours"

    def __init__(
        self,
        quiet: Annotated[bool, QUIET] = False,
        verbose: Annotated[bool, VERBOSE] = False,
        legend: Annotated[bool, LEGEND] = False,
        theme: Annotated[str | None, THEME] = None,
        input_limit: Annotated[str | None, INPUT_LIMIT] = None,
    ) -> None:
        if input_limit is not None:
            incoming.limit_to(input_limit)
        from attnscope.render.terminal import console

        try:
            os.getcwd()
        except OSError as error:  # torch's own libraries end the process in a folder that is no more
            gone = f"cannot work in the current folder: {error.strerror}: go to another one"
            raise InputError(gone) from error
        self.quiet, self.verbose, self.legend = quiet, verbose, legend
        self._written: list[Path] = []
        self._said: set[str] | None = None
        self.screen = console.Paper()
        if self.screen.width < NARROWEST:
            self.screen.width = NARROWEST if self.screen.width > 1 else 80  # COLUMNS=0 says nothing
        self._narration = console.Paper(stderr=True, soft_wrap=True)
        warnings.showwarning = self._warned
        depth = self.screen.color_system
        self.background = console.background(theme, os.environ)
        if depth is not None:
            self.screen.push_theme(console.theme(self.background, depth))

    @property
    def width(self) -> int:
        return self.screen.width

    def deliver(
        self,
        result: "Result",
        delivery: "Delivery",
        focus: "Focus | None" = None,
        *,
        targets: "Sequence[Path] | None" = None,
        line: "NumberedText | None" = None,
        beside: "Beside | None" = None,
        shown: bool = True,
        codes: "Mapping[int, int] | None" = None,
    ) -> None:
        """Write the files, then the screen or JSON; raise `CertificateError` where the certificate failed.

        The files are `targets`, by default those of `delivery`. `line` is the text of many that the result is
        about, `beside` the extra content of pages; without `shown` only files are written. For a result over
        many lines `codes` are the lines' exit codes, for JSON. With --quiet and files the screen stays empty.
        """
        from attnscope.render.sheets import WHOLE

        focus = replace(focus or WHOLE, verbose=self.verbose, legend=self.legend, brief=self.quiet)
        for target in delivery.targets if targets is None else targets:
            self.file(result, target, delivery, focus, beside)
        if delivery.json and line is not None:
            self.document(line.document(result))
        elif delivery.json and codes is not None:
            self.document(summary(codes, result))
        elif delivery.json:
            from attnscope.render import files

            self.document(files.as_json(result))
        elif shown and not (self.quiet and delivery.targets):
            if line is not None:
                self.show(*line.heading(self.width))
            from attnscope.render.terminal.sheet import screen

            self.show(*screen(result, self.width, focus))
        sys.stdout.flush()
        for place in self._written:
            if not self.quiet:
                self._narration.print(printable(f"wrote {place}"))
        self._written.clear()
        if result.verdict == "failed":
            from attnscope.render.kit.words import DISTRUST

            raise CertificateError(f"the certificate FAILED: {DISTRUST}")

    def file(
        self,
        result: "Result",
        target: Path,
        delivery: "Delivery",
        focus: "Focus",
        beside: "Beside | None" = None,
    ) -> None:
        """Write a result to one file; a page also holds `beside` and the command that was typed."""
        os.environ["MPLBACKEND"] = "agg"  # no window is ever opened, whatever the environment asks for
        # of a home that it cannot write to; it then keeps its lists of fonts in a folder that goes with us
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        from attnscope.render.saving import save
        from attnscope.render.web.room import NOTHING

        beside = replace(beside or NOTHING, command=typed_command("page.html"), fragment=delivery.fragment)
        self._written += save(result, target, focus, delivery.look, self.notice, beside)

    def show(self, *parts: "RenderableType") -> None:
        from attnscope.render.kit.command import Command

        for part in parts:
            self.screen.print(part, soft_wrap=isinstance(part, Command))

    def document(self, json: str) -> None:
        """Print one JSON document to standard output, in UTF-8 whatever the terminal's encoding."""
        sys.stdout.flush()
        sys.stdout.buffer.write((json.rstrip("\n") + "\n").encode())

    @contextmanager
    def each_notice_once(self) -> Iterator[None]:
        """Context manager: prints each notice about many prompts only once."""
        self._said = set[str]()
        try:
            yield
        finally:
            self._said = None

    def notice(self, text: str) -> None:
        if self._said is not None:
            if text in self._said:
                return
            self._said.add(text)
        if not self.quiet:
            said = printable(f"note: {text}")
            self._narration.print(said, style="dim")

    def detail(self, text: str) -> None:
        if self.verbose:
            self.notice(text)

    def _warned(self, message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        """Show a library's warning only under -v."""
        text = one_line(message) if isinstance(message, Warning) else message
        self.detail(f"{category.__name__}: {text}")

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Context manager: shows a spinner on a terminal and discards what libraries print."""
        with ours_alone():
            if self.quiet or not sys.stderr.isatty():
                yield
            else:
                with undone_by_a_signal(_clear_line), self._narration.status(what) as sign:
                    sign.update(spinner="dots")  # drawn now: an import may hold its thread up for seconds
                    yield

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Context manager around importing a question's code and torch, with a spinner."""
        with self.working("importing torch"), lean_loading():
            yield


class PlainOutput(Output):
    """Output of a command that has no columns to explain and no details."""

    def __init__(
        self,
        quiet: Annotated[bool, QUIET] = False,
        theme: Annotated[str | None, THEME] = None,
        input_limit: Annotated[str | None, INPUT_LIMIT] = None,
    ) -> None:
        super().__init__(quiet, theme=theme, input_limit=input_limit)


def _clear_line() -> None:
    os.write(sys.stderr.fileno(), _CLEARED)


def check_delivery(delivery: "Delivery", kind: str, *, many: bool = False) -> None:
    """Raise `InputError`, before any work, for files that this kind of result cannot be written to.

    With `many` prompts a file holds all of them, unless its name has `{line}`.
    """
    if delivery.places:
        from attnscope import results
        from attnscope.cli.options import is_of_each_line
        from attnscope.render.saving import check_panels, check_targets

        of_each = [place for place in delivery.places if not many or is_of_each_line(place)]
        of_all = [place for place in delivery.places if place not in of_each]
        for places, named in ((of_each, kind), (of_all, "Prompts")):
            check_targets(places, getattr(results, named))
            check_panels(places, named)


_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_OUT, _ASIDE = ("-o", "--out"), ("-q", "--quiet", "-v", "--verbose", "--legend", "--json")


def remember(arguments: Sequence[str]) -> None:
    """Store the command-line arguments of this run."""
    _TYPED.set(tuple(map(_as_meant, arguments)))


def _as_meant(word: str) -> str:
    """A command-line word decoded as UTF-8, also where the system's encoding is another one."""
    try:
        return word.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return word


def typed_command(out: str) -> str:
    """The typed command with `out` as its only output file; empty where no command was typed."""
    typed = list(_kept(_TYPED.get()))
    return " ".join(map(quoted, ["attnscope", *typed, "-o", out])) if typed else ""


def _kept(arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for word in rest:
        if word in _OUT:
            next(rest, None)
        elif word not in _ASIDE and not word.startswith(("--out=", "-o")):
            yield word
