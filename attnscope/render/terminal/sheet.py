"""The screen of a result as rich renderables, for any width, in colour or not; and as plain text.

It is the sheet's words around its blocks, in lines no wider than the screen. Nothing is printed here, and
text of the model or the user never passes through markup.
"""

import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.render.kit.cells import DIM, fit
from attnscope.render.kit.command import Command, continued
from attnscope.render.kit.words import STYLES, origin_words, reading
from attnscope.render.sheet.blocks import (
    Beside,
    Block,
    Drawing,
    Matrix,
    Ranking,
    Rows,
    Statement,
    Statements,
    flat,
)
from attnscope.render.sheet.heads import HeadGrid, HeadMatrices
from attnscope.render.sheet.sheet import Next, Sheet, as_stored
from attnscope.render.sheet.steps import Steps
from attnscope.render.sheet.table import meanings
from attnscope.render.sheets import WHOLE, Focus, sheet_of
from attnscope.render.sheets.media import Timeline
from attnscope.render.terminal.console import Paper
from attnscope.render.terminal.grid import Mosaic, cells_of, grid, shades
from attnscope.render.terminal.matrix import Picture, numbers, steps
from attnscope.render.terminal.ranking import folded, kept_columns, lines_of_ranking, parted, room_of_bars
from attnscope.render.terminal.raster import Raster, timeline
from attnscope.results import Result, Verdict

_GAP = 3  # cells between blocks that stand side by side
_BETWEEN = " · "
CERTIFIED = "certified: the numbers are the model's own; not that attention explains its answer"
RECOMPUTED = (
    "recomputed: scores, weights and output follow from the q, k, v, mask and scale in the file; whether "
    "these are of this model, layer and text, attnscope check tells"
)
_MOST_LINES = 40  # beyond this height a further grid is left out


def screen(result: Result, width: int, focus: Focus = WHOLE) -> list[RenderableType]:
    """The renderables of a result's screen in `width` cells, from the top."""
    sheet = sheet_of(result, focus)
    return of_sheet(sheet if focus.stored is None else as_stored(sheet, focus.stored), width, focus)


NARROWEST, USUAL = 40, 80  # cells


def written(result: Result, focus: Focus = WHOLE, width: int | None = None) -> str:
    """The screen as plain text, as wide as the terminal, or 80 cells without one."""
    wide = shutil.get_terminal_size((USUAL, 24)).columns if width is None else width
    wide = max(wide, NARROWEST)
    paper = Paper(file=io.StringIO(), width=wide, color_system=None, force_jupyter=False)
    with paper.capture() as captured:
        for part in screen(result, wide, focus):
            paper.print(part)
    return captured.get().rstrip("\n")


def of_sheet(sheet: Sheet, width: int, focus: Focus = WHOLE) -> list[RenderableType]:
    """The screen of a sheet: answer, text, blocks, proof, and the next command."""
    opened = [*_answer(sheet, width), *_read(sheet, width)]
    if focus.brief:
        return [Group(*opened[: len(_answer(sheet, width))], *_proved(sheet, width, focus))]
    parts = opened, _evidence(sheet, width, focus), _proved(sheet, width, focus)
    following = [] if sheet.next is None else [Command("\n".join(_next(sheet.next)))]
    return [_apart(parts), *following]


def body(sheet: Sheet, width: int, focus: Focus = WHOLE) -> Group:
    """The screen of a sheet without its text and next command, for a frame that has these."""
    return _apart((_answer(sheet, width), _evidence(sheet, width, focus), _proved(sheet, width, focus)))


def _apart(parts: Iterable[Sequence[RenderableType]]) -> Group:
    held = [part for part in parts if part]
    return Group(*(line for part in held for line in ("", *part)[part is held[0] :]))


def _answer(sheet: Sheet, width: int) -> list[Text]:
    style = STYLES[Verdict.FAILED] if _failed(sheet) else "bold"
    return [Text(each.plain, style) for each in folded(Text(sheet.answer or sheet.title), width)]


def _failed(sheet: Sheet) -> bool:
    return not sheet.about_proof and any(verdict is Verdict.FAILED for verdict, _ in sheet.proof)


def _read(sheet: Sheet, width: int) -> list[Text]:
    if not sheet.texts:
        return []
    room = width - len(_BETWEEN) * (len(sheet.texts) - 1)
    cells = [cell_len(each) for each in sheet.texts]
    share = next(
        (most for most in range(max(cells), 1, -1) if sum(min(each, most) for each in cells) <= room), 1
    )
    cut = tuple(fit(each, share) for each in sheet.texts)
    read = Text(_BETWEEN.join(cut), style=DIM, no_wrap=True, overflow="ellipsis")
    messages = folded(Text(f"messages: {sheet.messages}", style=DIM), width) if sheet.messages else []
    return [read, *messages]


def _evidence(sheet: Sheet, width: int, focus: Focus) -> list[RenderableType]:
    if _failed(sheet) and not focus.verbose:
        hidden = "-v shows the numbers; files that -o asks for are written, and marked"
        return [Text(hidden, style=DIM)]
    shown = _shown(sheet, width)
    if focus.verbose:
        shown = [
            replace(each, blocks=tuple(map(_whole, each.blocks)))
            if isinstance(each, Beside)
            else _whole(each)
            for each in shown
        ]
    said = (sheet.control and f"control: {sheet.control}", *sheet.notes)
    below = _folded((Text(each, style=DIM) for each in said if each), width)
    drawn = [*laid(shown, width), *below]
    if focus.legend:
        every = [one for each in shown for one in flat(each)]
        columns = [each for one in every if isinstance(one, Rows) for each in kept_columns(one, width)]
        told = dict.fromkeys(each.says for each in every if isinstance(each, HeadGrid) and each.says)
        again = any(verdict is Verdict.RECOMPUTED for verdict, _ in sheet.proof)
        proved = [RECOMPUTED if again else CERTIFIED] if sheet.proof and sheet.origins else []  # not worked
        meant = (*meanings(columns), *told, *sheet.legend, *proved)
        explained = _folded((Text(each, style=DIM) for each in meant), width)
        drawn += ["", *explained] if explained else []
    return drawn


def _proved(sheet: Sheet, width: int, focus: Focus) -> list[Text]:
    proved: list[tuple[str, str | Style]] = [(words, STYLES[verdict]) for verdict, words in sheet.proof]
    proved += [(sheet.untouched, DIM)] if sheet.untouched else []
    words = [*origin_words(sheet.origins), *sheet.departs]
    joined = Text(_BETWEEN, style=DIM).join(
        [*(Text(each, style=style) for each, style in proved), *(Text(each, style=DIM) for each in words)]
    )
    lines = parted(joined, width) if joined.plain else []
    if focus.verbose:
        told = *identity(sheet), *sheet.details
        lines += _folded((Text(each, style=DIM) for each in told if each), width)
    return lines


def identity(sheet: Sheet) -> tuple[str, ...]:
    """Lines of -v: title and setting, and the model, kernel and route of each run."""
    setting = " · ".join(each for each in (sheet.title, sheet.setting) if each)
    return setting, *(reading(each).plain for each in sheet.origins)


def _next(following: Next) -> Iterator[str]:
    yield f"Next: {following.question}"
    yield from continued(following.command)


def _shown(sheet: Sheet, width: int) -> list[Block | Beside]:
    shown = list[Block | Beside]()
    for each in sheet.blocks:
        before = [one for earlier in shown for one in flat(earlier)]
        spared = all(isinstance(one, HeadGrid | Matrix) and one is not sheet.main for one in flat(each))
        behind = any(not isinstance(one, HeadGrid) for one in before)
        needed = (_height(one, width) for one in (*before, *flat(each)))
        if not (behind and spared) or sum(needed) <= _MOST_LINES:
            shown.append(each)
    return shown


def _whole(block: Block) -> Block:
    return replace(block, whole=True) if isinstance(block, HeadGrid | Statements) else block


def _height(block: Block, width: int) -> int:
    picture = picture_of(block, width)
    return len(lines_of(block, width)) + 1 + (picture.height if isinstance(picture, Picture | Raster) else 0)


def laid(blocks: Sequence[Block | Beside], width: int) -> list[RenderableType]:
    """Blocks one below the other; narrow ones side by side where they fit."""
    rows: list[list[list[Text]] | Picture | Mosaic | Raster] = []
    before = 0
    for block, lines, room in (each for one in blocks for each in _parts(one, width)):
        if not lines:
            continue
        last = rows[-1] if rows else None
        fits = isinstance(last, list) and sum(map(_wide, [*last, lines])) + _GAP * len(last) <= width
        if isinstance(last, list) and fits and room == before:
            last.append(lines)
        else:
            rows.append([lines])
        before = room
        if (picture := picture_of(block, width)) is not None:
            rows.append(picture)
    drawn: list[RenderableType] = []
    for row in rows:
        above = [""] if drawn and isinstance(row, list) else []
        drawn += [*above, *(_joined(row) if isinstance(row, list) else [row])]
    return drawn


def _parts(block: Block | Beside, width: int) -> list[tuple[Block, list[Text], int]]:
    """Blocks with their lines and width; rankings side by side get bars of one length."""
    alike = [each for each in flat(block) if isinstance(each, Ranking) and each.marks]
    share = (width - _GAP * (len(alike) - 1)) // max(len(alike), 1)
    share = share if all(room_of_bars(each, share) for each in alike) else width
    if len(alike) < 2 or not (longest := min(room_of_bars(each, share) for each in alike)):
        return [(each, lines_of(each, width), width) for each in flat(block)]
    return [
        (each, lines_of_ranking(each, share, longest), share)
        if isinstance(each, Ranking) and each.marks
        else (each, lines_of(each, width), width)
        for each in flat(block)
    ]


def _wide(lines: list[Text]) -> int:
    return max(each.cell_len for each in lines)


def _joined(beside: list[list[Text]]) -> list[Text]:
    if len(beside) == 1:
        return beside[0]
    rows = []
    for row in zip_longest(*beside, fillvalue=Text()):
        joined = Text(no_wrap=True, overflow="crop")
        for part, lines in zip(row, beside, strict=True):
            joined.append_text(part)
            joined.append(" " * (_wide(lines) + _GAP - part.cell_len))
        joined.rstrip()
        rows.append(joined)
    return rows


def lines_of(block: object, width: int) -> list[Text]:
    """The lines of a block in `width` cells."""
    match block:
        case Statements():
            return statements(block, width)
        case Steps():
            return _folded(steps(block, width), width)
        case Timeline():
            return _folded(timeline(block, width), width)
        case Drawing():
            return [] if block.plain is None else lines_of(block.plain, width)
        case Rows():
            return lines_of_ranking(block, width)
        case HeadGrid():
            return _folded(grid(block, width), width)
        case Matrix():
            title = folded(Text(block.title, style="bold"), width)
            if (lines := numbers(block, width)) is None:
                return title
            says = folded(Text(block.says, style=DIM), width) if block.says else []
            return [*title, *lines, *says]
        case HeadMatrices():
            title = folded(Text(block.title, style="bold"), width)
            if not cells_of(block, width):
                told = "too many heads for this screen: a wider one, or -o FILE.png, shows them"
                return [*title, *folded(Text(told, style=DIM), width)]
            mosaic = block.says.replace("white", "faint").replace("dark", "strong")
            return [*title, *folded(Text(mosaic, style=DIM), width), Text()]
    raise TypeError(f"nothing is shown of {type(block).__name__}")


def _folded(lines: Iterable[Text], width: int) -> list[Text]:
    return [each for long in lines for each in folded(long, width)]


def picture_of(block: object, width: int) -> Picture | Mosaic | Raster | None:
    """Picture below a block's lines: for numbers that do not fit, or for many small matrices."""
    if isinstance(block, Drawing) and not isinstance(block, Timeline):
        return picture_of(block.plain, width)
    if isinstance(block, HeadGrid):
        return shades(block, width)
    if isinstance(block, HeadMatrices):
        return Mosaic(block, cells) if (cells := cells_of(block, width)) else None
    return Picture(block, width) if isinstance(block, Matrix) and numbers(block, width) is None else None


_INDENT = "  "
_MORE = "-v has the figures of each sentence, and the command that shows more"


def statements(block: Statements, width: int) -> list[Text]:
    """Lines of the statements: question and sentence, or all parts of each if `whole`."""
    if block.whole:
        return [line for each in block.statements for line in _lines(each, width)]
    told = list[Text]()
    for each in block.statements:
        told += parted(Text.assemble((each.question, "bold"), f" {each.sentence}"), width)
        told += () if each.command else _indented(each.figures, DIM, width)
    return [*told, *folded(Text(_MORE, style=DIM), width)]


def _lines(told: Statement, width: int) -> Iterator[Text]:
    yield from folded(Text(told.question, style="bold"), width)
    yield from _indented(told.sentence, "", width)
    yield from _indented(told.figures, DIM, width)
    for line in continued(told.command) if told.command else ():
        yield from (Text(line, style=DIM),) if len(line) <= width else folded(Text(line, style=DIM), width)


def _indented(text: str, style: str | Style, width: int) -> Iterator[Text]:
    for line in folded(Text(text), width - len(_INDENT)) if text else ():
        yield Text(_INDENT + line.plain, style=style)
