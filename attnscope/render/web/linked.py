"""Two columns of words in a page, lines between those that belong together; its own are under a word.

Nothing of it needs a script: what stands in the group of a word is drawn strong while the pointer is on it.
"""

from collections.abc import Iterator

from attnscope.render.sheet.drawings import Linked, Tie
from attnscope.render.web.blocks import escape

_ROW, _BETWEEN, _LETTER, _EDGE = 22, 170, 8, 26  # pixels


def linked(block: Linked) -> str:
    """The words, the lines, and what is said of them."""
    wide = [_LETTER * max(len(each) for each in (*words, side)) + 12 for words, side in _sides(block)]
    high = _ROW * max(len(block.left), len(block.right)) + _EDGE
    ends = wide[0], wide[0] + _BETWEEN
    heads = "".join(
        f'<text x="{x}" y="14" text-anchor="{anchor}" class="small">{escape(side)}</text>'
        for (_, side), x, anchor in zip(
            _sides(block), (ends[0] - 8, ends[1] + 8), ("end", "start"), strict=True
        )
    )
    groups = "".join((*_words(block, ends, 1), *_words(block, ends, 0)))
    told = f'<p class="told">{escape(block.says)}</p>' if block.says else ""
    return (
        f'<h2>{escape(block.title)}</h2>{told}<svg width="{sum(wide) + _BETWEEN}" height="{high}" '
        f'class="linked" role="img" aria-label="{escape(_aloud(block))}">{heads}{groups}</svg>'
    )


def _sides(block: Linked) -> tuple[tuple[tuple[str, ...], str], tuple[tuple[str, ...], str]]:
    return (block.left, block.sides[0]), (block.right, block.sides[1])


def _words(block: Linked, ends: tuple[int, int], side: int) -> Iterator[str]:
    """Each word of a side with its lines: those of the left stay, the others come while it is meant."""
    words = (block.left, block.right)[side]
    anchor, x = (("end", ends[0] - 8), ("start", ends[1] + 8))[side]
    for i, word in enumerate(words):
        own = [tie for tie in block.ties if (tie.left, tie.right)[side] == i]
        lines = "".join(_line(block, tie, ends, hidden=side == 1) for tie in own)
        said = "; ".join(tie.told for tie in own) or f"{word}: no link"
        yield (
            f'<g class="w">{lines}<text x="{x}" y="{_down(block, side, i) + 5:.0f}" text-anchor="{anchor}">'
            f"{escape(word)}<title>{escape(said)}</title></text></g>"
        )


def _line(block: Linked, tie: Tie, ends: tuple[int, int], *, hidden: bool) -> str:
    path = f"M{ends[0]} {_down(block, 0, tie.left):.1f}L{ends[1]} {_down(block, 1, tie.right):.1f}"
    kinds = " ".join(
        each for each in ("tie", "only" if hidden else "", "broken" if tie.broken else "") if each
    )
    style = "" if hidden else f' style="opacity:{0.25 + 0.75 * tie.strength:.2f}"'
    title = "" if hidden else f"<title>{escape(tie.told)}</title>"
    return f'<path d="{path}" class="{kinds}"{style}>{title}</path>'


def _down(block: Linked, side: int, place: int) -> float:
    words = len((block.left, block.right)[side])
    return _EDGE + (place + 0.5) * _ROW * max(len(block.left), len(block.right)) / words


def _aloud(block: Linked) -> str:
    return "; ".join(tie.told for tie in block.ties)
