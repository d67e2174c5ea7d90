"""A corpus in a terminal: a grid of means, how they scatter, every measure in a line, what was proved."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.corpus.words import (
    GAIN,
    LINK,
    PLACE,
    absent_words,
    certified_words,
    error_text,
    head_name,
    held_out,
    left_out,
    link_legend,
    link_words,
    mean_text,
    mean_words,
    quantile_texts,
    ranked,
    read_words,
    setting,
    signed,
    size_words,
    subject,
)
from attnscope.render.kit.cells import DIM, HEADING, line
from attnscope.render.kit.labels import left, right
from attnscope.render.kit.words.certificate import GLYPHS, STYLES
from attnscope.render.kit.words.header import reading
from attnscope.render.overview.words import range_words, style, told
from attnscope.results import Corpus
from attnscope.results.claims.corpus import LEVELS, CorpusScores

_CELL, _NAME, _NUMBER = 6, 20, 8
_MOST_LINES, _LISTED = 110, 10


def corpus(result: Corpus, width: int) -> RenderableType:
    """Header, what was read, the grid of the measure that is looked at, all measures, the proof."""
    main = result.main
    body = _links(result) if result.linked else []
    return Group(
        Text.assemble((subject(result), "bold"), f" · {setting(result)}"),
        Text(reading(result.provenance).plain, style=DIM),
        Text(read_words(result.read)),
        *(Text(each, style=DIM) for each in (left_out(result.read),) if each),
        "",
        *body,
        line((mean_words(main), HEADING)),
        *_grid(result, main, width),
        Text(range_words(main.scores, result.read.longest), style=DIM),
        "",
        *_measures(result, width),
        *(Text(each, style=DIM) for each in absent_words(result)),
        "",
        *(
            Text(f"{GLYPHS[verdict]} {each}", style=STYLES[verdict])
            for verdict, each in certified_words(result)
        ),
    )


def _grid(result: Corpus, scores: CorpusScores, width: int) -> list[Text]:
    """Layers by heads, in blocks of heads where they do not stand side by side."""
    margin = len(f"L{max(result.layers)}") + 1
    per_block = max((width - margin) // _CELL, 1)
    starts = range(0, len(result.heads), per_block)
    if len(starts) * (len(result.layers) + 2) > _MOST_LINES:
        return [Text(f"The grid ({size_words(result)}) does not fit here: a wider terminal or -o FILE.png.")]
    lines = []
    for start in starts:
        columns = range(start, min(start + per_block, len(result.heads)))
        heading = "".join(right(f"H{result.heads[j]} ", _CELL) for j in columns)
        lines.append(line(" " * margin, (heading, HEADING)))
        for i, layer in enumerate(result.layers):
            values = [(float(scores.values[i, j])) for j in columns]
            cells = [(right(f"{told(scores.scores, v)} ", _CELL), style(scores.scores, v)) for v in values]
            lines.append(line((left(f"L{layer}", margin), HEADING), *cells))
    return lines


def _measures(result: Corpus, width: int) -> list[Text]:
    """The strongest head by every measure: its mean, its error, how texts scatter."""
    there = {name: each for name, each in result.measures.items() if not each.absent and ranked(each.scores)}
    wide = width >= _NAME + 17 + _NUMBER * (len(LEVELS) + 1)
    levels = range(len(LEVELS)) if wide else (0, 2, 4)
    heads = "".join(right(f"{LEVELS[i]:.0%}", _NUMBER) for i in levels)
    lines = [
        line(
            (
                f"{left('measure', _NAME)}{left('head', 8)}{right('mean', 7)}   {left('error', 7)}{heads}",
                HEADING,
            )
        )
    ]
    for name, scores in there.items():
        place = ranked(scores.scores)[0]
        every = quantile_texts(scores, place)
        lines.append(
            line(
                (left(name, _NAME), HEADING),
                left(head_name(result, place), 8),
                (right(mean_text(scores, place), 7), style(scores.scores, float(scores.values[place]))),
                f"   {left(error_text(scores, place), 7)}",
                "".join(right(every[i], _NUMBER) for i in levels),
            )
        )
    meant = "the strongest head by each measure; texts count alike; 5% to 95%: what such a share is not above"
    return [*lines, Text(meant, style=DIM)]


def _links(result: Corpus) -> list[Text | str]:
    """The heads that gain most over what distance explains."""
    link, place, gain = (result.measure(name) for name in (LINK, PLACE, GAIN))
    listed = ranked(gain.scores)[:_LISTED]
    if not listed:
        return [Text(f"no text has {link_words(result)}"), ""]
    texts = int(gain.count[listed[0]])
    lines: list[Text | str] = [
        line((f"heads that link {link_words(result)} most, in {texts:,} texts that have it", HEADING)),
        line((f"{left('head', 8)}{right('link', 8)}{right('place', 8)}{right('gain', 8)}   error", HEADING)),
    ]
    for at in listed:
        value = float(gain.values[at])
        lines.append(
            line(
                (left(head_name(result, at), 8), HEADING),
                right(mean_text(link, at), 8),
                right(mean_text(place, at), 8),
                (right(signed(value), 8), style(gain.scores, value)),
                f"   {error_text(gain, at)}",
            )
        )
    if told_held := held_out(result):
        lines.append(Text(told_held))
    return [*lines, *(Text(each, style=DIM) for each in link_legend(result)), ""]
