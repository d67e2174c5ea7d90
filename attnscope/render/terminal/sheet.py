"""A sheet in a terminal, for any width: its words in their order around its blocks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.cells import DIM
from attnscope.render.kit.labels import fit
from attnscope.render.kit.words.certificate import STYLES
from attnscope.render.kit.words.command import Command, continued
from attnscope.render.kit.words.header import origin_words, reading
from attnscope.render.sheet.blocks import Beside, Block, Matrix, Ranking, Rows, flat
from attnscope.render.sheet.drawings import Statements
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import meanings
from attnscope.render.terminal.blocks import lines_of, picture_of
from attnscope.render.terminal.grid import Mosaic
from attnscope.render.terminal.matrix import Picture
from attnscope.render.terminal.ranking import folded, kept_columns, lines_of_ranking, parted, room_of_bars
from attnscope.render.terminal.raster import Raster
from attnscope.results import Verdict

_GAP = 3  # cells between blocks that stand side by side
_BETWEEN = " · "
CERTIFIED = "certified: the numbers are the model's own; not that attention explains its answer"
RECOMPUTED = (
    "recomputed: scores, weights and output follow from the q, k, v, mask and scale in the file; whether "
    "these are of this model, layer and text, attnscope check tells"
)
_MOST_LINES = 40  # beyond them a further grid is left to the picture


def screen(sheet: Sheet, width: int, focus: Focus = WHOLE) -> list[RenderableType]:
    """The answer, what was read, all that shows it, what is proved, and where to go next."""
    opened = [*_answer(sheet, width), *_read(sheet, width)]
    if focus.brief:
        return [Group(*opened[: len(_answer(sheet, width))], *_proved(sheet, width, focus))]
    parts = opened, _evidence(sheet, width, focus), _proved(sheet, width, focus)
    following = [] if sheet.next is None else [Command("\n".join(_next(sheet.next)))]
    return [_apart(parts), *following]


def body(sheet: Sheet, width: int, focus: Focus = WHOLE) -> Group:
    """The screen within a frame that says what was read: no text, and nothing to go on with."""
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
    below = [line for each in said if each for line in folded(Text(each, style=DIM), width)]
    drawn = [*laid(shown, width), *below]
    if focus.legend:
        every = [one for each in shown for one in flat(each)]
        columns = [each for one in every if isinstance(one, Rows) for each in kept_columns(one, width)]
        told = dict.fromkeys(each.says for each in every if isinstance(each, HeadGrid) and each.says)
        again = any(verdict is Verdict.RECOMPUTED for verdict, _ in sheet.proof)
        proved = [RECOMPUTED if again else CERTIFIED] if sheet.proof and sheet.origins else []  # not worked
        meant = (*meanings(columns), *told, *sheet.legend, *proved)
        explained = [line for each in meant for line in folded(Text(each, style=DIM), width)]
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
        lines += [line for each in told if each for line in folded(Text(each, style=DIM), width)]
    return lines


def identity(sheet: Sheet) -> tuple[str, ...]:
    """What the result is, of which attention of which model, and what pins its numbers down."""
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
    """One below the other, those that are narrow side by side where they fit; a picture has its own lines."""
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
    """Each block, its lines, and the cells that it has: rankings share them where all have room for bars.

    Bars that are read beside one another are on one scale.
    """
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
