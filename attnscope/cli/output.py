"""Where things go: results to standard output, the rest to standard error, files whole or not at all.

Here is remembered what was typed too, for files that say how they were made.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attnscope import incoming
from attnscope.cli.lines import summary
from attnscope.cli.streams import document, ours_alone
from attnscope.errors import CertificateError, InputError, one_line
from attnscope.printable import printable
from attnscope.printable import word as quoted
from attnscope.process.ending import undone_by_a_signal
from attnscope.process.startup import lean_loading
from attnscope.session.option import OUT, option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnscope.cli.lines import NumberedText
    from attnscope.cli.options.delivery import Delivery
    from attnscope.render.focus import Focus
    from attnscope.render.web.room import Beside
    from attnscope.results import Result, Verdict

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
    """The two streams of one run, and the listener of its session. `quiet` keeps notices to itself."""

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

        _check_folder()
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
        """The one way out: files, then the screen or JSON, then exit code 5 where a certificate failed.

        A quiet run for which files are named shows nothing on the screen.

        The files are `targets`, by default those of `delivery`; a `line` of many texts is told with them. A
        page holds what is `beside`. What is not `shown` has files alone. Of the answer over many lines
        `codes` are what became of each, which JSON sums up.
        """
        from attnscope.render.focus import WHOLE

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
        finish(result.verdict)

    def file(
        self,
        result: "Result",
        target: Path,
        delivery: "Delivery",
        focus: "Focus",
        beside: "Beside | None" = None,
    ) -> None:
        """One file of a result; a page of it holds what is `beside`, and the command that was typed."""
        os.environ["MPLBACKEND"] = "agg"  # no window is ever opened, whatever the environment asks for
        # of a home that it cannot write to; it then keeps its lists of fonts in a folder that goes with us
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        from attnscope.render.saving import save
        from attnscope.render.web.room import NOTHING

        beside = replace(beside or NOTHING, command=typed_command("page.html"), fragment=delivery.fragment)
        self._written += save(result, target, focus, delivery.look, self.notice, beside)

    def show(self, *parts: "RenderableType") -> None:
        from attnscope.render.kit.words.command import Command

        for part in parts:
            self.screen.print(part, soft_wrap=isinstance(part, Command))

    def document(self, json: str) -> None:
        """One JSON document, alone on standard output."""
        document(json)

    @contextmanager
    def each_notice_once(self) -> Iterator[None]:
        """While open, what was said of one of many prompts is not said again of another."""
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
        """What a library warns of is about its own use: told under -v, in place of lines between ours."""
        text = one_line(message) if isinstance(message, Warning) else message
        self.detail(f"{category.__name__}: {text}")

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A spinner while something slow goes on, where somebody can see it; no library prints meanwhile."""
        with ours_alone():
            if self.quiet or not sys.stderr.isatty():
                yield
            else:
                with undone_by_a_signal(_clear_line), self._narration.status(what) as sign:
                    sign.update(spinner="dots")  # drawn now: an import may hold its thread up for seconds
                    yield

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Around importing what a question is worked out with, and torch by it: a second, and often more."""
        with self.working("importing torch"), lean_loading():
            yield


class PlainOutput(Output):
    """Output of what has no columns to explain, and nothing more to tell."""

    def __init__(
        self,
        quiet: Annotated[bool, QUIET] = False,
        theme: Annotated[str | None, THEME] = None,
        input_limit: Annotated[str | None, INPUT_LIMIT] = None,
    ) -> None:
        super().__init__(quiet, theme=theme, input_limit=input_limit)


def _check_folder() -> None:
    """Refuse to start in a folder that is no more: torch's own libraries end the process there."""
    try:
        os.getcwd()
    except OSError as error:
        raise InputError(f"cannot work in the current folder: {error.strerror}: go to another one") from error


def _clear_line() -> None:
    os.write(sys.stderr.fileno(), _CLEARED)


def finish(verdict: "Verdict | None") -> None:
    """End with exit code 5 when the certificate failed; what there is has been shown and written by then."""
    if verdict == "failed":
        from attnscope.render.kit.words.certificate import DISTRUST

        raise CertificateError(f"the certificate FAILED: {DISTRUST}")


def check_delivery(delivery: "Delivery", kind: str, *, many: bool = False) -> None:
    """Refuse a file that this kind of result has no form for, or that cannot be written, before any work.

    Of `many` prompts a file is of all of them together, unless its name has `{line}`.
    """
    if delivery.places:
        from attnscope import results
        from attnscope.cli.naming import is_of_each_line
        from attnscope.render.saving import check_panels, check_targets

        of_each = [place for place in delivery.places if not many or is_of_each_line(place)]
        of_all = [place for place in delivery.places if place not in of_each]
        for places, named in ((of_each, kind), (of_all, "Prompts")):
            check_targets(places, getattr(results, named))
            check_panels(places, named)


_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_OUT, _ASIDE = ("-o", "--out"), ("-q", "--quiet", "-v", "--verbose", "--legend", "--json")


def remember(arguments: Sequence[str]) -> None:
    """Note what stands behind `attnscope` in this run."""
    _TYPED.set(tuple(map(_as_meant, arguments)))


def _as_meant(word: str) -> str:
    """A word as it was typed, whose bytes Python could not decode where the system is not UTF-8."""
    try:
        return word.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        return word


def typed_command(out: str) -> str:
    """The command with `out` in the place of the files that were named; empty where nobody typed one."""
    typed = list(_kept(_TYPED.get()))
    return " ".join(map(quoted, ["attnscope", *typed, "-o", out])) if typed else ""


def _kept(arguments: Sequence[str]) -> Iterator[str]:
    rest = iter(arguments)
    for word in rest:
        if word in _OUT:
            next(rest, None)
        elif word not in _ASIDE and not word.startswith(("--out=", "-o")):
            yield word
