"""Writes a result to a file, as its suffix says: complete or not at all, refused before any work if possible.

Importing this loads no matplotlib. MPLBACKEND is left alone, since a notebook has its own; the command line
sets it.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.errors import InputError
from attnscope.process.ending import undone_by_a_signal, written_whole
from attnscope.register import kinds
from attnscope.render.look import USUAL, Look
from attnscope.render.sheets import WHOLE, Focus, no_picture, proof_of, sheet_of
from attnscope.render.web.room import NOTHING, Beside
from attnscope.results import Result
from attnscope.results.heads import MEAN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Notice = Callable[[str], None]
PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"
PANEL = "{panel}"  # stands in a file name for the name of each panel of a report


def picture_suffixes(kind: type) -> tuple[str, ...]:
    """Picture suffixes of one kind of result; empty where it has no picture."""
    return () if no_picture(kind) else PICTURES


def suffixes(kind: type) -> tuple[str, ...]:
    """Every suffix under which one kind of result can be saved."""
    from attnscope.render import files

    return (*picture_suffixes(kind), *files.formats(kind), PAGE)


def check_targets(targets: Sequence[Path], kind: type) -> None:
    """Raise `InputError`, before any work, for a target with a wrong suffix or an unwritable place."""
    from attnscope.render import files
    from attnscope.render.script import why_none

    there = suffixes(kind)
    for target in targets:
        if (suffix := target.suffix.lower()) not in there:
            if suffix == files.SCRIPT and (why := why_none(kind)):
                raise InputError(f"no script: {why}")
            raise InputError(f"cannot write '{target}': the name must end in {', '.join(there)}")
        _check_place(target)


def check_panels(targets: Sequence[Path], kind: str) -> None:
    """Raise `InputError` for `{panel}` in a name whose result has no panels, or that is no picture."""
    panelled = any(each.drawing and each.result.endswith(f":{kind}") for each in kinds().values())
    for target in targets:
        if PANEL in target.name and (not panelled or target.suffix.lower() not in PICTURES):
            raise InputError(f"cannot write '{target}': only the picture of a report has panels")


def _check_place(target: Path) -> None:
    """Raise `InputError` where a temporary file cannot be made in the target's folder."""
    try:
        if target.is_dir():
            raise InputError(f"cannot write '{target}': it is a folder")
        nearest = next(folder for folder in target.absolute().parents if folder.exists())
        if not nearest.is_dir():
            raise InputError(f"cannot write '{target}': {nearest} is not a folder")
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror}") from error


def write(target: Path, content: bytes) -> None:
    """Write `content` to `target`, complete or not at all; makes folders, and leaves none empty."""
    try:
        with _in_its_folder(target), written_whole(target) as file:
            file.write(content)
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror}") from error


@contextmanager
def _in_its_folder(target: Path) -> Iterator[None]:
    """Context manager: makes the target's folders, and removes new ones that stay empty."""
    made = [folder for folder in target.parents if not folder.exists()]

    def clear() -> None:
        for folder in made:
            with suppress(OSError):  # a folder that holds the target stays, and with it those above
                folder.rmdir()

    with undone_by_a_signal(clear):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield
        finally:
            clear()


def silent(notice: str) -> None:
    """A `Notice` that ignores its text."""


def content(
    result: Result,
    suffix: str,
    focus: Focus = WHOLE,
    look: Look = USUAL,
    notice: Notice = silent,
    beside: Beside = NOTHING,
) -> bytes:
    """File content of a result: its picture with `focus` and `look`, its page, or all of its numbers.

    A page opens on `focus` and holds `beside`. `notice` is called for characters that no installed font has,
    and for a doubtful verdict that the picture does not show.
    """
    if suffix in PICTURES:
        from attnscope.render import figure

        if suffix == ".pdf":  # which may have several pages
            drawn = figure.pages(result, focus, look)
        else:
            drawn = [figure.figure_of(result, focus, look)]
        return _picture(result, drawn, suffix, look, notice)
    if suffix == PAGE:
        from attnscope.render.web.page import as_page

        if (head := getattr(result, "head", None)) == MEAN or getattr(head, "head", None) == MEAN:
            raise InputError("a page shows heads one by one: a mean over heads has none")
        return as_page(result, focus, beside)
    from attnscope.render import files

    return files.numbers(result, suffix)


def _picture(result: Result, drawn: "list[Figure]", suffix: str, look: Look, notice: Notice) -> bytes:
    from attnscope.render import figure

    missing = next(filter(None, map(figure.missing_glyphs, drawn)), "")
    if missing and suffix != ".svg":  # its viewer draws the letters
        notice(f"no installed font has {missing}: drawn as boxes")
    silent, verdict = look.bare or not (look.headed or look.captioned), result.verdict
    if silent and verdict is not None and not verdict.proved:
        word = verdict.upper() if verdict == "failed" else verdict
        notice(f"the picture does not say that its certificate is {word}: only its metadata do")
    format = figure.FORMATS[PICTURES.index(suffix)]
    return figure.figure_bytes(
        drawn if len(drawn) > 1 else drawn[0], format, look.dpi, _described(result, look)
    )


def _described(result: Result, look: Look) -> str:
    """Metadata of a picture: certificate and origin, whatever its look."""
    from attnscope.render.kit.words import own_name, whole_source

    sources = [
        whole_source(each, each.model if look.in_full else own_name(each.model))
        for each in sheet_of(result).origins
    ]
    return " · ".join(part for part in (proof_of(result), *dict.fromkeys(sources)) if part)


def save(
    result: Result,
    target: Path,
    focus: Focus = WHOLE,
    look: Look = USUAL,
    notice: Notice = silent,
    beside: Beside = NOTHING,
) -> list[Path]:
    """Write `result` to `target`; with `{panel}` in its name, each panel of a report to a file.

    Returns the paths of the written files.
    """
    if PANEL in target.name:
        return list(_save_panels(result, target, look, notice))
    write(target, content(result, target.suffix.lower(), focus, look, notice, beside))
    return [target]


def _save_panels(result: Result, target: Path, look: Look, notice: Notice) -> Iterator[Path]:
    from attnscope.render import figure

    suffix = target.suffix.lower()
    drawings = figure.panels(result, look) if suffix in PICTURES else {}
    if not drawings:
        raise InputError(f"cannot write '{target}': only the picture of a report has panels")
    for name, drawn in drawings.items():
        place = target.with_name(target.name.replace(PANEL, name))
        write(place, _picture(result, [drawn], suffix, look, notice))
        yield place
