"""What is said about a corpus, the same in a terminal, in a picture and on a page."""

import math

import numpy as np

from attnscope.render.kit.numbers import counted, short
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.render.overview.words import told
from attnscope.results import Corpus, HeadScores, Verdict
from attnscope.results.claims.corpus import CorpusRead, CorpusScores
from attnscope.tokens import printable

Place = tuple[int, int]
LINK, PLACE, GAIN = "link", "link-place", "link-gain"
_REASONS = 3


def subject(result: Corpus) -> str:
    """`corpus dev.conllu`, or `VERB→NOUN in dev.conllu`."""
    name = printable(result.read.name)
    return f"{link_words(result)} in {name}" if result.linked else f"corpus {name}"


def link_words(result: Corpus) -> str:
    """`VERB→NOUN`."""
    assert result.linked is not None, "asked only where there is a link"
    return "→".join(map(printable, result.linked))


def setting(result: Corpus) -> str:
    """Model and attention."""
    part = f" of {printable(result.tower)}" if result.tower else ""
    return f"{model_words(result.provenance)} · {attention_words(result.kind)}{part}"


def read_words(read: CorpusRead) -> str:
    """How much was read."""
    told = f"{counted_in(read.texts, 'text')}, {counted_in(read.tokens, 'token')} (longest {read.longest:,})"
    if read.padded:
        told += f" · {read.padded:,} read beside longer ones, filled up"
    return told


def counted_in(number: int, noun: str) -> str:
    """`25,147 tokens`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def left_out(read: CorpusRead) -> str:
    """What was set aside and why, cut and blank; "" where nothing was."""
    parts = []
    if read.left_out:
        listed = list(read.set_aside.items())
        reasons = [
            f"{count:,} {'since ' if why.startswith('it') else ''}{printable(why)}"
            for why, count in listed[:_REASONS]
        ]
        if more := sum(count for _, count in listed[_REASONS:]):
            reasons.append(f"{more:,} for other reasons")
        reasons = (
            [each.replace("the tokens that are read", f"{read.limit:,} tokens") for each in reasons]
            if (read.limit)
            else reasons
        )
        parts.append(f"set aside {read.left_out:,}: {'; '.join(reasons)}")
    if read.cut:
        parts.append(f"{counted_in(read.cut, 'text')} cut to {read.limit:,} tokens")
    if read.blanks:
        parts.append(f"{counted_in(read.blanks, 'blank line')} passed over")
    return " · ".join(parts)


def mean_words(scores: CorpusScores) -> str:
    """What the numbers of a grid are."""
    what = "commonest class" if scores.scores.description.classes else "mean"
    return f"{scores.scores.description.title}: {what} over texts"


def certified_words(result: Corpus) -> list[tuple[Verdict, str]]:
    """How many heads have each verdict in the texts that were certified."""
    total = sum(result.certified.values())
    of = f"{result.sampled} of {counted_in(result.read.texts, 'text')}"
    alike = f"to {result.unlike:.1g}" if result.unlike else "to the last bit"
    return [
        (
            verdict,
            f"{verdict.value}: {count:,} of {total:,} heads in {of}; read alone, these give the same weights "
            f"{alike}",
        )
        for verdict in Verdict
        if (count := result.certified.get(verdict.value))
    ]


def ranked(scores: HeadScores) -> list[Place]:
    """Every head that has a value, the strongest first; those that are alike in their order."""
    values = scores.values if scores.description.strong == "low" else -scores.values
    order = np.argsort(values, axis=None, kind="stable")
    places = ((int(i), int(j)) for i, j in zip(*np.unravel_index(order, values.shape), strict=True))
    return [place for place in places if not np.isnan(values[place])]


def head_name(result: Corpus, place: Place) -> str:
    return f"L{result.layers[place[0]]} H{result.heads[place[1]]}"


def mean_text(scores: CorpusScores, place: Place) -> str:
    """`2.31`, a class by its name."""
    return told(scores.scores, float(scores.values[place]), 6)


def error_text(scores: CorpusScores, place: Place) -> str:
    """`±.02`; the share of texts that are of the class."""
    if scores.agreement is not None:
        return f"{float(scores.agreement[place]):.0%}"
    error = float(scores.error[place])
    return "" if math.isnan(error) else f"±{small(error)}"


def small(value: float) -> str:
    """A size with two digits that tell: `.021`, `1.3`."""
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e3:
        return short(value)
    decimals = max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{decimals}f}"


def quantile_texts(scores: CorpusScores, place: Place) -> tuple[str, ...]:
    """The quantiles of one head as they stand in a table; of classes none."""
    if scores.agreement is not None:
        return ("",) * len(scores.quantiles)
    return tuple(told(scores.scores, float(each[place]), 6) for each in scores.quantiles)


def held_out(result: Corpus) -> str:
    """How the best head of every other text does on those between, both ways."""
    if result.linked is None:
        return ""
    gains = result.measure(GAIN).halves
    if np.isnan(gains).all(axis=(1, 2)).any():
        return ""
    best = [np.unravel_index(int(np.nanargmax(half)), half.shape) for half in gains]
    value = float(np.mean([gains[1][best[0]], gains[0][best[1]]]))
    names = [head_name(result, (int(i), int(j))) for i, j in best]
    chosen = names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}"
    return f"chosen on every other text ({chosen}), judged on those between: gain {signed(value)}"


def link_legend(result: Corpus) -> list[str]:
    """What link, place and gain are."""
    source, target = map(printable, result.linked or ("", ""))
    return [
        f"link: mean weight of a {source} word on all {target} words of its text, by words",
        f"place: what any word of the text gives at the distances of {source} and {target}; "
        "gain: link less place",
        "±: standard error over texts; the best of many heads is so partly by luck: texts held out have none",
    ]


def signed(value: float) -> str:
    """`+.021`."""
    return f"{'-' if value < 0 else '+'}{small(abs(value))}"


def size_words(result: Corpus) -> str:
    """`6 layers x 12 heads`."""
    return f"{counted(len(result.layers), 'layer')} x {counted(len(result.heads), 'head')}"


def absent_words(result: Corpus) -> list[str]:
    """For each reason the measures that have no meaning here for it."""
    reasons = dict.fromkeys(each.absent for each in result.measures.values() if each.absent)
    return [
        f"{', '.join(name for name, each in result.measures.items() if each.absent == reason)}: - ({reason})"
        for reason in reasons
    ]
