"""Attention over a sound as a figure with its page: spectrogram above, one head or many below."""

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import INK, Frame, Words, sheet
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.typesetting import drawing, text_width
from attnscope.render.kit.words.figure import heading_words, proof_words, source_words
from attnscope.render.kit.words.header import attention_words, feature_words, model_words
from attnscope.render.media.picture_figure import verdict_counts
from attnscope.render.media.plot_sound import draw_curve, draw_rows, draw_spectrogram, mark_frame
from attnscope.render.media.words import medium_words, query_words, shares_words, text_words
from attnscope.render.plot.layout import token_labels
from attnscope.results import Kind, SoundAttention, SoundHeads

_SPECTROGRAM, _GAP = 1.5, 0.12  # inches
_LABEL = 7.0  # points
_TALLEST = 24.0  # inches that the rows of many heads may take


def sound_figure(result: SoundAttention) -> Figure:
    """The spectrogram, and below it the attention of one query over the same time.

    Of cross-attention without a chosen query the rows of all tokens of the decoder.
    """
    with drawing():
        every = _every_token(result)
        labels = token_labels(result.head.query_tokens) if every else []
        below = max(0.6, 0.16 * len(labels)) if every else 1.0
        figure, beside, above, under = _stacked(result, below, labels, _words(result))
        if every:
            rows = result.head.weights[:, result.gaze.keys]
            drawn = draw_rows(rows, labels, result.seconds, result.sound.seconds, under)
            under.set_ylabel("query", size=8, color=INK)
            _bar(figure, beside, drawn, below / (below + _GAP + _SPECTROGRAM))
        else:
            draw_curve(result.weights, result.seconds, result.sound.seconds, under)
        if result.gaze.cell is not None:
            mark_frame(result.gaze.cell[0], result.seconds, above, under)
    return figure


def sound_heads_figure(result: SoundHeads) -> Figure:
    """The spectrogram, and below it a row for each head, each with colours of its own."""
    with drawing():
        overview = result.overview
        rows = result.weights.reshape(-1, result.weights.shape[-1])
        high = min(0.17, _TALLEST / len(rows))
        heads = [(layer, head) for layer in overview.layers for head in overview.heads]
        several = high < 0.09  # then only the first head of each layer is named
        labels = [
            f"L{layer} H{head}" if not several or head == overview.heads[0] else "" for layer, head in heads
        ]
        figure, _, above, under = _stacked(result, max(0.6, high * len(rows)), labels, _heads_words(result))
        draw_rows(rows, labels, result.seconds, result.sound.seconds, under, own_scale=True)
        for first in range(len(overview.heads), len(rows), len(overview.heads)):
            under.axhline(first, color="white", linewidth=1.2)
        if not several:
            _largest(result, under)
        if result.gaze.cell is not None:
            mark_frame(result.gaze.cell[0], result.seconds, above)
    return figure


def _stacked(
    result: SoundAttention | SoundHeads, below: float, labels: list[str], words: Words
) -> tuple[Figure, Axes, Axes, Axes]:
    """A page, the axes around both others, those of the spectrogram, and those `below` inches under it."""
    margin = max([0.45, *(text_width(label, _LABEL) + 0.1 for label in labels)]) + 0.3
    height = _SPECTROGRAM + _GAP + below
    width = min(max(5.5, 0.5 * result.sound.seconds), 11.0)
    frames = [
        Frame(width, height, left=margin, top=0.05, bottom=0.4),
        Frame(0.75, height, left=0.0, top=0.05),
    ]
    figure, (host, beside) = sheet(frames, words)
    host.set_axis_off()
    beside.set_axis_off()
    above = host.inset_axes((0.0, 1 - _SPECTROGRAM / height, 1.0, _SPECTROGRAM / height))
    under = host.inset_axes((0.0, 0.0, 1.0, below / height))
    draw_spectrogram(result.heard, result.sound.seconds, above)
    return figure, beside, above, under


def _bar(figure: Figure, beside: Axes, drawn: ScalarMappable, height: float) -> None:
    bar = figure.colorbar(drawn, cax=beside.inset_axes((0.15, 0.0, 0.16, height)))
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=7, length=2, colors=INK)
    bar.ax.set_ylabel("attention weight", size=8, color=INK)


def _largest(result: SoundHeads, axes: Axes) -> None:
    """Right of each row the weight of its brightest colour, and the share that lies on the sound."""
    for i, row in enumerate(result.weights.reshape(-1, result.weights.shape[-1])):
        told = f" {weight_text(float(row.max()), 3)} · {100 * float(row.sum()):.0f} %"
        axes.text(1.0, i + 0.5, told, size=5.5, color=INK, va="center", transform=axes.get_yaxis_transform())


def _every_token(result: SoundAttention) -> bool:
    return result.head.kind is Kind.CROSS and result.gaze.query is None


def _words(result: SoundAttention) -> Words:
    head = result.head
    told = shares_words(result)
    if result.gaze.cell is not None:
        told += "; marked: the query's own frame"
    told = " · ".join([told, *feature_words(head)])
    foot = (told, proof_words(head.certificate), source_words(head.provenance))
    shown = ["all queries"] if _every_token(result) else [query_words(result)]
    sentence = " · ".join([medium_words(result), *shown, *text_words(result)])
    return Words(heading_words(head), sentence, foot)


def _heads_words(result: SoundHeads) -> Words:
    overview = result.overview
    heading = f"{model_words(overview.provenance)} · {attention_words(overview.kind)} · over a sound"
    sentence = " · ".join([medium_words(result), query_words(result), *text_words(result)])
    legend = (
        "at the right of each row: the largest weight on a frame, which its brightest colour stands for, and "
        "the share of the query's attention that lies on the sound"
    )
    return Words(heading, sentence, (legend, verdict_counts(overview), source_words(overview.provenance)))
