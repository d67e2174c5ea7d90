"""Several heads as a figure with its page."""

from matplotlib.figure import Figure

from attnscope.render.kit.figure.page import Words, colour_bar, page
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.typesetting import drawing
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.figure import sentence_words, source_words
from attnscope.render.kit.words.header import feature_words, model_words, where_words
from attnscope.render.kit.words.weights import overview_view_words
from attnscope.render.overview.panels import panels_figure
from attnscope.render.overview.plot import draw_overview, legend, name_classes, overview_frame
from attnscope.render.overview.words import absent_words, heading_words, shown
from attnscope.results import Overview, Verdict


def overview_figure(result: Overview) -> Figure:
    """The measure of every head, layers by heads, with the strongest link of each where legible.

    Several measures have a panel each, without links.
    """
    with drawing():
        if len(shown(result)) > 1:
            return panels_figure(result, _overview_words(result))
        made = page(overview_frame(result), _overview_words(result))
        drawn = draw_overview(result, made.axes)
        colour_bar(made, drawn, "weight" if result.aim is not None else result.main.description.scale)
        name_classes(result.main, made.bar)
    return made.figure


def _overview_words(result: Overview) -> Words:
    heading = f"{model_words(result.provenance)} · {where_words(result)} · {heading_words(result)}"
    every = [certificate.verdict for layer in result.certificates for certificate in layer]
    found = [verdict for verdict in Verdict if verdict in every]
    counts = [f"{GLYPHS[verdict]} {every.count(verdict)} {verdict.value}" for verdict in found]
    verdicts = f"{counted(len(every), 'head')}: {', '.join(counts)}"
    if set(every) != {Verdict.CERTIFIED}:
        verdicts += "; outlined: not certified"
    legends = () if len(shown(result)) > 1 else (legend(result),)
    told = " · ".join((*legends, *absent_words(result), *overview_view_words(result), *feature_words(result)))
    return Words(heading, sentence_words(result), (told, verdicts, source_words(result.provenance)))
