"""A result as a matplotlib figure, and a figure as the same bytes every time.

Figures are made without pyplot, on a light page that is as large as its labels need. `draw_head` and
`draw_overview` (in `plot_head`, `plot_overview`) draw the same on any Axes.
"""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from attnscope.render import comparison_words
from attnscope.render.certificate import GLYPHS, certificate_words, verdict_words
from attnscope.render.header import feature_words, model_words, where_words, written_words
from attnscope.render.map_words import DISCLAIMER, correlation_words, settings_words, trust_words
from attnscope.render.numbers import counted
from attnscope.render.page import DPI, Words, colour_bar, page, sheet
from attnscope.render.panels import NO_KEY, NOTHING_LEFT, Panel, Show, panel
from attnscope.render.plot_head import draw_head, head_frame
from attnscope.render.plot_layers import draw_layers, has_layers, layers_frame
from attnscope.render.plot_map import draw_map, map_frame
from attnscope.render.plot_overview import draw_overview, legend, overview_frame
from attnscope.render.plot_rows import MOST_KEYS, draw_row, leaves_out, row_frame, title_lines
from attnscope.render.typesetting import drawing, missing_glyphs
from attnscope.render.view_words import head_of, overview_view_words, weights_words
from attnscope.results import Comparison, HeadView, HeadWeights, Overview, Projection, Provenance, Verdict
from attnscope.tokens import printable

__all__ = [
    "FORMATS",
    "Format",
    "comparison_figure",
    "figure_bytes",
    "heatmap",
    "map_figure",
    "missing_glyphs",
    "overview_figure",
]

Format = Literal["png", "svg", "pdf"]
FORMATS: tuple[Format, ...] = ("png", "svg", "pdf")
_NO_TIME = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def heatmap(result: HeadWeights | HeadView, show: Show = "weights") -> Figure:
    """One stage of a head: rows are queries, columns keys (or dimensions), masked cells hatched."""
    shown = panel(result, show)
    with drawing():
        made = page(head_frame(shown), _head_words(result, shown))
        drawn = draw_head(shown, made.axes)
        colour_bar(made, drawn, shown.title)
    return made.figure


def overview_figure(result: Overview) -> Figure:
    """The entropy of every head, layers by heads, with the strongest link of each where legible."""
    with drawing():
        made = page(overview_frame(result), _overview_words(result))
        drawn = draw_overview(result, made.axes)
        colour_bar(made, drawn, "entropy in nats")
    return made.figure


def map_figure(
    result: Projection, queries: Sequence[int] = (), key: int | None = None, links: int = 5
) -> Figure:
    """The t-SNE map of a head: one panel, or the same map once for each of `queries` with its links."""
    chosen: list[int | None] = [*queries] or [None]
    with drawing():
        frame = map_frame(result, titled=bool(queries))
        further = [replace(frame, left=0.2)] * (len(chosen) - 1)
        figure, panels = sheet([frame, *further], _map_words(result))
        for query, axes in zip(chosen, panels, strict=True):
            draw_map(result, axes, query, key, links)
    return figure


def comparison_figure(result: Comparison) -> Figure:
    """What the word attends to on both sides, and beside it how alike its vectors are, layer by layer."""
    with drawing():
        titled = title_lines(result)
        frames = [row_frame(result, side, titled=titled) for side in result.sides]
        if has_layers(result):
            frames.append(layers_frame(result, max(frame.height for frame in frames)))
        figure, panels = sheet(frames, _comparison_words(result))
        for side, axes in zip(result.sides, panels, strict=False):
            draw_row(result, side, axes, titled=titled)
        if has_layers(result):
            draw_layers(result, panels[-1])
    return figure


def figure_bytes(figure: Figure | Sequence[Figure], format: Format) -> bytes:
    """The file of `figure`: the same bytes for the same result, without any time or random name in it.

    Several figures are the pages of one PDF.
    """
    buffer = io.BytesIO()
    with drawing():
        if isinstance(figure, Figure):
            figure.savefig(buffer, format=format, dpi=DPI, metadata=_NO_TIME[format])
        else:
            with PdfPages(buffer, metadata=_NO_TIME["pdf"]) as pages:
                for page_figure in figure:
                    pages.savefig(page_figure, dpi=DPI)
    return buffer.getvalue()


def _head_words(result: HeadWeights | HeadView, shown: Panel) -> Words:
    """Heading, text and small print of one head."""
    head, told = head_of(result), []
    if shown.column_tokens is not None and (shown.masked or (~shown.answered).any()):
        told.append(f"hatched: {'masked' if shown.masked or shown.unanswered == NO_KEY else NOTHING_LEFT}")
    if shown.show == "weights":
        told += weights_words(result)
    told += feature_words(head)
    foot = [certificate_words(head.certificate), source_words(head.provenance)]
    foot = [" · ".join(told), *foot] if told else foot
    return Words(heading_words(head), sentence_words(head), tuple(foot))


def heading_words(result: HeadWeights, shown: str = "") -> str:
    """Model, head, kind, what is `shown` of it, and the verdict where it is not the best."""
    parts = [model_words(result.provenance), result.name, where_words(result)]
    parts += [shown] if shown else []
    if result.certificate.verdict is not Verdict.CERTIFIED:
        parts.append(
            verdict_words(result.certificate.verdict).replace(" ", "\u00a0")
        )  # the mark stays with it
    return " · ".join(parts)


def sentence_words(result: HeadWeights) -> str:
    """The text that was read, both where there are two; nothing for positions that stand for no text."""
    sentence = f"“{printable(result.query_tokens.sentence)}”" if result.query_tokens.texts else ""
    if result.query_tokens is not result.key_tokens and result.key_tokens.texts:
        sentence = f"query: {sentence}   key: “{printable(result.key_tokens.sentence)}”"
    return sentence


def _map_words(result: Projection) -> Words:
    head, written = result.head, written_words(result.head.query_tokens)
    trust = (trust_words(result), correlation_words(result), DISCLAIMER)
    foot = (
        *trust,
        " · ".join([*settings_words(result), *([written] if written else [])]),
        certificate_words(head.certificate),
        source_words(head.provenance),
    )
    return Words(
        heading_words(head, "t-SNE map" if result.settled else "t-SNE map that DID NOT SETTLE"),
        sentence_words(head),
        foot,
    )


def _comparison_words(result: Comparison) -> Words:
    heading = f"{comparison_words.models(result)} · {comparison_words.subject(result)}"
    heading += f" · {comparison_words.kinds(result)}"
    if result.verdict is not Verdict.CERTIFIED:
        heading += f" · {verdict_words(result.verdict)}"
    told = comparison_words.remarks(result)
    if has_layers(result):
        told.insert(0, comparison_words.curves(result))
    if any((~side.head.allowed[side.position]).any() for side in result.sides):
        told.insert(0, "grey: masked")
    if leaves_out(result):
        told.insert(0, f"of longer texts the {MOST_KEYS} strongest keys, in the order of the text")
    verdicts = [f"{GLYPHS[verdict]} {words}" for verdict, words in comparison_words.verdict_counts(result)]
    heads = [
        f"{letter} {side.head.name} {certificate_words(side.head.certificate)}"
        for letter, side in zip("AB", result.sides, strict=True)
    ]
    sources = dict.fromkeys(source_words(side.head.provenance) for side in result.sides)
    foot = (" · ".join(told), " · ".join(verdicts), *heads, *sources)
    return Words(heading, comparison_words.shown_words(result), foot)


def _overview_words(result: Overview) -> Words:
    heading = f"{model_words(result.provenance)} · {where_words(result)} · entropy by head"
    every = [certificate.verdict for layer in result.certificates for certificate in layer]
    found = [verdict for verdict in Verdict if verdict in every]
    counts = [f"{GLYPHS[verdict]} {every.count(verdict)} {verdict.value}" for verdict in found]
    verdicts = f"{counted(len(every), 'head')}: {', '.join(counts)}"
    if set(every) != {Verdict.CERTIFIED}:
        verdicts += "; outlined: not certified"
    sentence = f"“{printable(result.query_tokens.sentence)}”"
    told = " · ".join((legend(result), *overview_view_words(result), *feature_words(result)))
    return Words(heading, sentence, (told, verdicts, source_words(result.provenance)))


def source_words(provenance: Provenance) -> str:
    """What pins the numbers down, for the small print."""
    versions = " ".join(f"{name} {version}" for name, version in sorted(provenance.versions.items()))
    how = (provenance.device, provenance.dtype, f"kernel {provenance.kernel}", provenance.route)
    parts = (provenance.model, provenance.source, *how, versions)
    return " · ".join(printable(part) for part in parts if part)
