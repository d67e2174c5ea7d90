"""One head and one of its queries on one landscape page.

From left to right and down: the sentence and what the model says to it; scores, weights and the map; what
each key adds to the output, and the head in numbers; the small print.
"""

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnscope.render.certificate import certificate_words, verdict_words
from attnscope.render.figure import source_words
from attnscope.render.header import attention_words, feature_words, model_words
from attnscope.render.map_words import DISCLAIMER, settings_words
from attnscope.render.numbers import counted
from attnscope.render.page import FAINT
from attnscope.render.panels import panel
from attnscope.render.plot_answer import ROW as ANSWER_ROW
from attnscope.render.plot_answer import draw_answer
from attnscope.render.plot_contributions import NUMBERS, draw_contributions
from attnscope.render.plot_contributions import ROW as SHARE_ROW
from attnscope.render.plot_facts import ROW as FACT_ROW
from attnscope.render.plot_facts import draw_facts, facts_width
from attnscope.render.plot_map import draw_map
from attnscope.render.plot_pair import BAR, Cells, cells, draw_cells
from attnscope.render.report_sheet import TITLE, TITLE_ROOM, Sheet, sheet
from attnscope.render.report_text import Answer, answer, facts, query_name, shares, shares_remark
from attnscope.render.sentence import SetText, set_text
from attnscope.render.typesetting import drawing, line_height, text_width, wrapped
from attnscope.results import HeadAttention, Kind, Report, Verdict

_MARGIN, _GAP, _GUTTER = 0.4, 0.3, 0.55  # inches: at the edge, between heat maps, between columns
_HEADING, _FOOT = 11.0, 6.5
_SENTENCE_SIZES, _MOST_LINES = (21.0, 18.0, 15.5, 13.0, 11.0), 3
_MOST_SHARES = 11
_UNDER = 0.3  # inches for the colour bar below a heat map
_SHAPE = 1.6  # of the page, width over height
_VERDICT_INKS = {
    Verdict.CERTIFIED: "#1a7f37",
    Verdict.INCONCLUSIVE: "#9a6700",
    Verdict.PARTIAL: "#9a6700",
    Verdict.UNCERTIFIED: "#8250df",
    Verdict.FAILED: "#cf222e",
}


@dataclass(frozen=True)
class Columns:
    """Where the two columns of the page begin and how wide they are; `labels` is the room of row labels."""

    labels: float
    first: float
    second: float

    @property
    def split(self) -> float:
        return _MARGIN + self.labels + self.first + _GUTTER

    @property
    def width(self) -> float:
        return self.split + self.second + _MARGIN


def report_figure(result: Report) -> Figure:
    """The page of a report."""
    with drawing():
        laid = cells(panel(result.head, "weights"))
        listed = shares(result, _MOST_SHARES)
        said = answer(result)
        columns = _columns(result, laid)
        texts = _sentences(result, columns, said)
        foot = _foot(result, columns.width - 2 * _MARGIN)
        header = max(_texts_height(texts), 0.0 if said is None else _answer_height(said))
        upper = max(laid.above + laid.height, 2.6)
        lower = max(len(listed) * SHARE_ROW + 0.2, len(facts(result)) * FACT_ROW)
        tops = [_MARGIN + 0.34]
        tops.append(tops[0] + header + 0.3 + TITLE_ROOM)
        tops.append(tops[1] + upper + _UNDER + 0.3 + TITLE_ROOM)
        tops.append(tops[2] + lower + 0.25)
        page = sheet(columns.width, tops[3] + len(foot) * line_height(_FOOT) + 0.6 * _MARGIN)
        _draw_heading(page, result.head)
        _draw_header(page, result, columns, tops[0], texts, said)
        _draw_pair(page, result, laid, columns, tops[1])
        _draw_map(page, result, columns, tops[1], upper)
        _draw_shares(page, result, columns, tops[2])
        _draw_facts(page, result, columns, tops[2])
        page.paragraph(_MARGIN, tops[3], foot, _FOOT)
    return page.figure


def report_pages(result: Report) -> list[Figure]:
    return [report_figure(result)]


def _columns(result: Report, laid: Cells) -> Columns:
    names = [each.name for each in shares(result, _MOST_SHARES)]
    labels = max(laid.left, *(text_width(name, 8.0) + 0.06 for name in names), 0.0)
    first = 2 * laid.width + _GAP
    points = len(result.projection.queries) + len(result.projection.keys)
    needed = max(min(2.6 + 0.45 * math.sqrt(points), 8.0), facts_width(facts(result)))
    return Columns(labels, first, max(needed, 4.6))


def _draw_heading(page: Sheet, head: HeadAttention) -> None:
    words = " · ".join((model_words(head.provenance), head.name, attention_words(head.kind)))
    base = _MARGIN + 0.1
    page.write(_MARGIN, base, words, _HEADING, "bold", FAINT)
    verdict = head.certificate.verdict
    ink = _VERDICT_INKS[verdict]
    page.write(page.width - _MARGIN, base, verdict_words(verdict), _HEADING, "bold", ink, ha="right")


def _sentences(result: Report, columns: Columns, said: Answer | None) -> list[tuple[str, SetText]]:
    """The text with the query marked; of cross-attention both texts, each with the word of its side."""
    head = result.head
    width = columns.width - 2 * _MARGIN if said is None else columns.labels + columns.first - 0.2
    if head.kind is not Kind.CROSS:
        return [("", set_text(head.query_tokens, result.query, width, _SENTENCE_SIZES, _MOST_LINES))]
    inner = width - 0.55
    return [
        ("key", set_text(head.key_tokens, None, inner, _SENTENCE_SIZES[2:], 2)),
        ("query", set_text(head.query_tokens, result.query, inner, _SENTENCE_SIZES[1:], 2)),
    ]


def _texts_height(texts: list[tuple[str, SetText]]) -> float:
    return sum(text.height for _, text in texts)


def _answer_height(said: Answer) -> float:
    return 0.28 + len(said.guesses) * ANSWER_ROW + (0.2 if said.text else 0)


def _draw_header(
    page: Sheet,
    result: Report,
    columns: Columns,
    top: float,
    texts: list[tuple[str, SetText]],
    said: Answer | None,
) -> None:
    place = top
    for word, text in texts:
        if word:
            page.write(_MARGIN, place + 0.76 * text.pitch, word, 7.5, color=FAINT)
        page.set(_MARGIN + (0.55 if word else 0), place, text)
        place += text.height
    if said is None:
        return
    page.write(columns.split, top + 0.16, said.title, TITLE, "bold")
    rows = len(said.guesses) * ANSWER_ROW
    if said.guesses:
        draw_answer(said.guesses, page.axes(columns.split, top + 0.26, columns.second, rows))
    if said.text:
        lines = wrapped(said.text, columns.second, 9.0)[:3]
        page.paragraph(columns.split, top + 0.3 + rows, lines, 9.0)


def _draw_pair(page: Sheet, result: Report, laid: Cells, columns: Columns, top: float) -> None:
    head = result.head
    left = _MARGIN + columns.labels
    sums = "every row sums to 1" if head.sink is None else "rows sum to less than 1: the sink takes the rest"
    for show, title, subtitle in (
        ("scaled", "what enters the softmax", f"scaled scores, q·k x {head.scale:.3g}"),
        ("weights", "weights: softmax of the scores", sums),
    ):
        shown = panel(head, show)  # type: ignore[arg-type]
        axes = page.axes(left, top + laid.above, laid.width, laid.height)
        bar = page.axes(left, top + laid.above + laid.height + 0.09, min(laid.width, 1.8), BAR)
        draw_cells(shown, axes, bar, laid, result.query, labelled=show == "scaled")
        page.title(left, top, title, subtitle)
        left += laid.width + _GAP


def _draw_map(page: Sheet, result: Report, columns: Columns, top: float, height: float) -> None:
    axes = page.axes(columns.split, top, columns.second, height)
    draw_map(result.projection, axes, result.query)
    named = axes.get_title(loc="left")
    axes.set_title(f"t-SNE map of queries and keys: {named}", loc="left", size=TITLE, weight="bold", pad=17)
    page.write(columns.split, top + height + 0.15, DISCLAIMER, _FOOT, color=FAINT)


def _draw_shares(page: Sheet, result: Report, columns: Columns, top: float) -> None:
    left = _MARGIN + columns.labels
    listed, remark = shares(result, _MOST_SHARES), shares_remark(result)
    subtitle = "share of the output vector, all keys together 100 %"
    subtitle = " · ".join([subtitle, *([remark] if remark else [])]) if listed else remark
    page.title(left, top, f"how each key's value adds to the output of {query_name(result)}", subtitle)
    if listed:
        axes = page.axes(left, top, columns.first - NUMBERS, len(listed) * SHARE_ROW)
        draw_contributions(listed, axes)


def _draw_facts(page: Sheet, result: Report, columns: Columns, top: float) -> None:
    listed = facts(result)
    queries = counted(int(result.head.answered.sum()), "query")
    page.title(columns.split, top, "the head in numbers", f"{queries}, the map, and the two together")
    draw_facts(listed, page.axes(columns.split, top, columns.second, len(listed) * FACT_ROW))


def _foot(result: Report, width: float) -> list[str]:
    """What was proved, how the map was made, what the numbers come from."""
    head = result.head
    told = []
    if not head.allowed.all():
        told.append("hatched: masked")
    told += feature_words(head)
    paragraphs = [
        " · ".join([certificate_words(head.certificate), *told]),
        " · ".join([*settings_words(result.projection)]),
        source_words(head.provenance),
    ]
    return [line for paragraph in paragraphs for line in wrapped(paragraph, width, _FOOT)]
