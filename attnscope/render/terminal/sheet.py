"""A sheet in a terminal, for any width: its words in their order around its blocks."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM
from attnscope.render.kit.words.certificate import STYLES
from attnscope.render.kit.words.command import Command
from attnscope.render.kit.words.header import reading
from attnscope.render.sheet.blocks import Beside, Block, Matrix, Ranking, Rows, flat
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import legend
from attnscope.render.terminal.blocks import lines_of, picture_of
from attnscope.render.terminal.matrix import Picture
from attnscope.render.terminal.ranking import folded, kept_columns, lines_of_ranking, room_of_bars
from attnscope.render.terminal.thumbnails import Mosaic

_GAP = 3  # cells between blocks that stand side by side
_MOST_LINES = 40  # beyond them a further grid is left to the picture


def screen(sheet: Sheet, width: int) -> list[RenderableType]:
    """What it is, all that it shows, and where to go next."""
    return [
        Group(*header(sheet), "", body(sheet, width)),
        *([Command(sheet.next)] if sheet.next else []),
    ]


def header(sheet: Sheet) -> list[Text]:
    """What this is and where it comes from, the text that was read."""
    lines = [Text.assemble((sheet.title, "bold"), f" · {sheet.setting}" if sheet.setting else "")]
    lines += [reading(sheet.origins[0])] if len(sheet.origins) == 1 else []
    return lines + [Text(each, style="italic", no_wrap=True, overflow="ellipsis") for each in sheet.texts]


def body(sheet: Sheet, width: int) -> Group:
    """The answer, the blocks that have room, what their columns are, and what is proved."""
    shown = _shown(sheet, width)
    every = [one for each in shown for one in flat(each)]
    columns = [each for one in every if isinstance(one, Rows) for each in kept_columns(one, width)]
    told = dict.fromkeys(each.says for each in every if isinstance(each, HeadGrid))
    answer = folded(Text(sheet.answer), width) if sheet.answer else []
    said = [Text(each, style=DIM) for each in (legend(columns), *told, *sheet.notes) if each]
    said += [Text(words, style=STYLES[verdict]) for verdict, words in sheet.proof]
    parts = [part for part in (answer, laid(shown, width), said) if part]
    return Group(*(line for part in parts for line in ("", *part)[part is parts[0] :]))


def _shown(sheet: Sheet, width: int) -> list[Block | Beside]:
    """The blocks in their order; grids and matrices that are not the first as far as they have room."""
    shown = list[Block | Beside]()
    for each in sheet.blocks:
        before = [one for earlier in shown for one in flat(earlier)]
        spared = all(isinstance(one, HeadGrid | Matrix) and one is not sheet.main for one in flat(each))
        behind = any(not isinstance(one, HeadGrid) for one in before)
        needed = (_height(one, width) for one in (*before, *flat(each)))
        if not (behind and spared) or sum(needed) <= _MOST_LINES:
            shown.append(each)
    return shown


def _height(block: Block, width: int) -> int:
    """About how many lines a block takes."""
    picture = picture_of(block, width)
    return len(lines_of(block, width)) + 1 + (picture.height if isinstance(picture, Picture) else 0)


def laid(blocks: Sequence[Block | Beside], width: int) -> list[RenderableType]:
    """One below the other, those that are narrow side by side where they fit; a picture has its own lines."""
    rows: list[list[list[Text]] | Picture | Mosaic] = []
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
