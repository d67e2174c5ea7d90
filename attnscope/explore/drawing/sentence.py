"""The sentence, its tokens shaded by a row or a column of the head, in a few lines around the cursor."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from attnscope.explore.drawing.grid import CURSOR
from attnscope.explore.drawing.surface import Surface
from attnscope.render.kit.cells import DIM
from attnscope.render.kit.labels import fit, left, settled
from attnscope.render.kit.palette import sequential
from attnscope.render.terminal.raster import SHADES
from attnscope.tokens import Tokens

_LONGEST = 24


@dataclass(frozen=True)
class Run:
    """Where a token stands: its number, its line and cells."""

    token: int
    line: int
    start: int
    text: str


@dataclass(frozen=True)
class Set:
    """The runs that are shown, from line `first` on, `lines` of them, after a margin."""

    runs: tuple[Run, ...]
    first: int
    lines: int
    margin: int

    def at(self, x: int, y: int) -> int | None:
        """The token at this cell, None between tokens."""
        for run in self.runs:
            start = self.margin + run.start
            if run.line - self.first == y and start <= x < start + cell_len(run.text):
                return run.token
        return None


def set_sentence(tokens: Tokens, cursor: int, margin: int, width: int, lines: int, marks: bool) -> Set:
    """The tokens in lines of `width` cells, `lines` of them so that the cursor's is among them."""
    room = max(width - margin, 8)
    runs: list[Run] = []
    line = start = 0
    for number, item in enumerate(tokens.items):
        text = fit(settled(item.name), min(_LONGEST, room - marks)) + (" " if marks else "")
        glued = item.name.startswith("##")
        gap = 0 if not start or glued else 1
        if start + gap + cell_len(text) > room:
            line, start, gap = line + 1, 0, 0
        runs.append(Run(number, line, start + gap, text))
        start += gap + cell_len(text)
    at = next((run.line for run in runs if run.token == cursor), 0)
    first = min(max(at - lines // 2, 0), max(line + 1 - lines, 0))
    shown = tuple(run for run in runs if first <= run.line < first + lines)
    return Set(shown, first, min(lines, line + 1), margin)


def sentence(
    title: str,
    laid: Set,
    shares: Sequence[float] | None,
    cursor: int | None,
    other: int | None,
    surface: Surface,
) -> Text:
    """The set text; a share of NaN is masked and dim, the cursor stands out, `other` is underlined."""
    lines = []
    for number in range(laid.first, laid.first + laid.lines):
        line = Text(no_wrap=True).append(left(title if number == laid.first else "", laid.margin), DIM)
        used = 0
        for run in laid.runs:
            if run.line != number:
                continue
            line.append(" " * (run.start - used), Style(dim=False))
            used = run.start + cell_len(run.text)
            line.append_text(_run(run, shares, cursor, other, surface))
        lines.append(line)
    return Text("\n").join(lines)


def _run(
    run: Run, shares: Sequence[float] | None, cursor: int | None, other: int | None, surface: Surface
) -> Text:
    share = 0.0 if shares is None else shares[run.token]
    blank = Style(dim=False)
    if run.token == cursor:
        return Text.assemble((run.text.rstrip(), CURSOR), (run.text[len(run.text.rstrip()) :], blank))
    if not surface.shades:
        style: str | Style = DIM if isnan(share) else sequential(share) if shares is not None else blank
        drawn = Text(run.text, style)
    else:
        mark = (
            "" if shares is None or isnan(share) else SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)]
        )
        word = run.text.rstrip()
        drawn = Text(word, DIM if isnan(share) else blank)
        if run.text != word:
            drawn.append(left(mark, len(run.text) - len(word)), blank)
    if run.token == other:
        drawn.stylize(Style(underline=True, bold=True))
    return drawn
