"""Where things go: results to standard output, the rest to standard error, files whole or not at all."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli import options
from attnscope.errors import CertificateError, InputError
from attnscope.tokens import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from attnscope.results import HeadAttention, Result, Verdict

NARROWEST = 40
PICTURES = (".png", ".svg", ".pdf")
NUMBERS = (".npz", ".csv", ".json")


class Output:
    """The two streams of one run. `quiet` keeps progress and notices to itself."""

    PANEL = "Besides"

    def __init__(self, quiet: options.Quiet = False, verbose: options.Verbose = False) -> None:
        from rich.console import Console

        self.quiet, self.verbose = quiet, verbose
        self.screen = Console(emoji=False, markup=False, highlight=False)
        self.screen.on_broken_pipe = _nobody_reads_on  # type: ignore[method-assign]
        if self.screen.width < NARROWEST:
            self.screen.width = NARROWEST if self.screen.width > 1 else 80  # COLUMNS=0 says nothing
        self._narration = Console(stderr=True, emoji=False, markup=False, highlight=False, soft_wrap=True)

    @property
    def width(self) -> int:
        return self.screen.width

    def show(self, *parts: "RenderableType") -> None:
        for part in parts:
            self.screen.print(part)

    def document(self, result: "Result") -> None:
        """The result as one JSON document in UTF-8, whatever the terminal speaks."""
        from attnscope.render import files

        sys.stdout.flush()
        sys.stdout.buffer.write((files.as_json(result).rstrip("\n") + "\n").encode())

    def notice(self, text: str) -> None:
        if not self.quiet:
            self._narration.print(f"note: {printable(text)}", style="dim")

    def detail(self, text: str) -> None:
        if self.verbose:
            self.notice(text)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A spinner while something slow goes on, where somebody can see it."""
        if self.quiet or not sys.stderr.isatty():
            yield
        else:
            with self._narration.status(what):
                yield


def _nobody_reads_on() -> None:
    """In place of rich's exit code 1, which looks like a bug; `attnscope.cli.app` ends the program."""
    raise BrokenPipeError


def finish(verdict: "Verdict") -> None:
    """End with exit code 5 when the certificate failed; what there is has been shown and written by then."""
    if verdict == "failed":
        raise CertificateError("the certificate FAILED: do not trust these numbers")


def check_targets(targets: list[Path], suffixes: tuple[str, ...]) -> None:
    """Refuse a target that could not be written, before any work is done."""
    for target in targets:
        if target.suffix.lower() not in suffixes:
            raise InputError(f"cannot write '{target}': the name must end in {', '.join(suffixes)}")
        if os.path.isdir(target):
            raise InputError(f"cannot write '{target}': it is a folder")
        try:
            nearest = next(folder for folder in target.absolute().parents if folder.exists())
        except OSError as error:
            raise InputError(f"cannot write '{target}': {error.strerror}") from error
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise InputError(f"cannot write '{target}': {nearest} is not a folder that can be written to")


def or_default(targets: list[Path], command: str, head: "HeadAttention", *, json: bool) -> list[Path]:
    """`targets`, or where none is named the picture's own place; no picture where JSON was asked for.

    It is the same place for the same head of the same model, and refused at once where it cannot be written.
    """
    if targets or json:
        return targets
    model = re.sub(r"[^\w.-]+", "-", Path(head.provenance.model).name) or "model"
    kind = "" if head.kind == "encoder" else f"-{head.kind}"
    own = [Path("outputs") / f"{command}-{model}{kind}-L{head.layer}-H{head.head}.png"]
    check_targets(own, PICTURES)
    return own


def write(target: Path, content: bytes) -> None:
    """`content` at `target`, complete or not at all; folders are made as needed."""
    part = target.with_name(f".{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        os.replace(part, target)
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def save(
    output: Output,
    targets: list[Path],
    result: "Result",
    picture: Callable[[], "Figure"] | None = None,
    pages: Callable[[], "list[Figure]"] | None = None,
) -> None:
    """`result` into every target, as its suffix says; `picture` makes the figure where one is wanted.

    `pages` makes the figures of a PDF that has several.
    """
    for target in targets:
        suffix = target.suffix.lower()
        draw = pages if pages is not None and suffix == ".pdf" else picture
        content = _numbers(result, suffix) if suffix in NUMBERS else _picture(output, draw, suffix)
        write(target, content)
        output.notice(f"wrote {target}")


def _numbers(result: "Result", suffix: str) -> bytes:
    from attnscope.render import files

    if suffix == ".npz":
        return files.as_npz(result)
    return (files.as_json(result) if suffix == ".json" else files.as_csv(result)).encode()


def _picture(output: Output, picture: "Callable[[], Figure | list[Figure]] | None", suffix: str) -> bytes:
    os.environ["MPLBACKEND"] = "agg"  # no window is ever opened, whatever the environment asks for
    from attnscope.render import figure

    assert picture is not None
    drawn = picture()
    for page in drawn if isinstance(drawn, list) else [drawn]:
        if missing := figure.missing_glyphs(page):
            output.notice(f"no installed font has {missing}: drawn as boxes")
            break
    return figure.figure_bytes(drawn, figure.FORMATS[PICTURES.index(suffix)])
