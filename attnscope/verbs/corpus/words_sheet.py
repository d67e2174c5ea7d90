"""Fills the sentence templates of `corpus` with the facts of a result, and makes charts of its texts."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from attnscope.printable import word
from attnscope.render.kit.cells import fit
from attnscope.render.kit.command import asking, asking_of_text
from attnscope.render.kit.numbers import cell, give_or_take, percent, signed, with_error
from attnscope.render.kit.words import many
from attnscope.render.sheet import measured
from attnscope.render.sheet.blocks import Curve, Ranking
from attnscope.render.sheet.said import Place, in_sample, named
from attnscope.render.sheet.sheet import Next
from attnscope.render.sheet.table import Column, Line, Mark, Table
from attnscope.render.sheets.overview import form_of_tokens
from attnscope.render.words import Said
from attnscope.results.claims.ranking import Z
from attnscope.verbs.corpus.result import (
    DISTANCE_ALONE,
    GAIN,
    LINK,
    Case,
    Corpus,
    CorpusRead,
    CorpusScores,
    CorpusText,
    LengthClass,
    LengthPair,
)

FLOOR = 10  # texts: of fewer the answer says that they are few
_HALF = 0.5  # of a head's attention: one that gives so much to one place can do so by place alone
_PLACES = ("previous", "next", "self", "first")
_REASONS = 3
error_of = partial(give_or_take, decimals=None)


def said(result: Corpus, in_nats: bool = False) -> Said:
    """A `Said` for a corpus: sentence templates and facts; entropy counts tokens unless `in_nats`."""
    tokens = result.main.scores.measure == "entropy" and not in_nats
    scores, read = result.measure(GAIN) if result.linked else result.main, result.read
    described, order, best = scores.scores.description, measured.ranked(scores.scores), scores.strongest
    classes = Counter(scores.scores.class_of(*place) for place in order).most_common(1)
    source, target = result.linked or (None, None)
    held, reasons = result.held_out if result.linked else None, list(read.set_aside.items())

    def written(value: float) -> str:
        return many(float(np.exp(value))) if tokens else measured.written(scores.scores, value)

    def of_best(measure: str) -> float | None:
        return float(result.measure(measure).values[best]) if measure in result.measures and best else None

    every, form = (scores.values, written) if scores.agreement is None else (scores.agreement, percent)
    parts = zip(scores.strongest_of_halves, scores.halves, strict=True)
    halves = [(named(result, head), written(float(half[head]))) for head, half in parts if head]
    places = [(share, each) for each in _PLACES if (share := of_best(each)) and share >= _HALF]
    share, place = max(places, default=(None, None))
    facts = {
        # what was measured
        "name": read.name,
        "tokens": tokens,
        "measure": described.name,
        "label": described.title,
        "amount": described.label or described.name,
        "unit": described.unit,
        "end": "least" if described.strong == "low" else "most",
        "source": source,
        "target": target,
        "absent": scores.absent,
        "size": scores.values.size,
        # what came out
        "heads": len(order),
        "best": best and named(result, best),
        "own": best and written(float(scores.values[best])),
        "middle": form(float(np.nanmedian(every))) if len(order) > 1 else None,
        "common_class": classes[0][0] if classes else None,
        "common_heads": classes[0][1] if classes else None,
        "place": place if tokens else None,
        "place_share": share,
        "texts": best and int(scores.count[best]),
        "few": read.texts < FLOOR,
        "halves": halves if len(halves) > 1 else None,
        # of a link
        "linking": of_best(LINK),
        "alone": of_best(DISTANCE_ALONE),
        "gaining": int((scores.values > 0).sum()),
        "held": held and with_error(*held),
        # what was read
        "read": read,
        "longest": f"{read.longest:,}",
        "set_aside": [(count, _reason(read, why)) for why, count in reasons[:_REASONS]],
        "other_reasons": sum(count for _, count in reasons[_REASONS:]),
        # what is proved
        "same_alone": in_sample(result.unlike) if result.held else None,
        "held_queries": result.held if 0 < result.held < result.queries else None,
    }
    return Said("corpus", result, facts)


def _reason(read: CorpusRead, why: str) -> str:
    return why.replace("the tokens that are read", f"{read.limit:,} tokens") if read.limit else why


def following(result: Corpus, say: Said) -> Next | None:
    """The next command: the reverse link, or a link of a treebank, or another measure."""
    if result.case is Case.UNRANKED:
        return None
    if result.linked is not None:
        pair = tuple(map(word, result.linked))
        asked = asking(result, "corpus", "--from-pos", pair[1], "--to-pos", pair[0])
        return Next(say("other_way"), asked)
    if result.read.tagged:
        asked = asking(result, "corpus", "--from-pos", "VERB", "--to-pos", "NOUN")
        return Next(say("parts_of_speech"), asked)
    if len(result.measures) > 1:
        return Next(say("a_sink"), asking(result, "corpus", "--measure", "sink"))
    return Next(say("all_measures"), asking(result, "corpus"))


_SHOWN = 110  # characters of a text
_tenth = partial(signed, decimals=1)


def texts_and_lengths(result: Corpus, say: Said) -> Iterator[Ranking | Curve]:
    """For the strongest head: the texts furthest from its mean, and its mean by length of text.

    None of a measure that is a class, nor where no head has a number; of few texts none is unlike the others.
    """
    best = looked_at(result)
    if best is None:
        return
    if result.main.count[best] >= FLOOR and result.main.error[best] > 0:
        yield _furthest(result, best, say)
    if len(result.lengths) > 1 and (result.main.of_lengths[(2, ..., *best)] > 1).any():
        yield _by_length(result, best, say)


def looked_at(result: Corpus) -> Place | None:
    """The strongest head, whose texts are shown; None for a class, and where no head has a number."""
    return None if result.main.agreement is not None else result.main.strongest


def opening(result: Corpus) -> str:
    """The command that opens the head in the first far text kept in full; empty for none."""
    best = looked_at(result)
    if best is None or result.main.count[best] < FLOOR:
        return ""
    for number, _ in result.main.furthest(best):
        if result.texts[number].whole:
            at = "--layer", str(result.layers[best[0]]), "--head", str(result.heads[best[1]])
            return asking_of_text("heads", result.texts[number].text, result.provenance, *at)
    return ""


def length(each: LengthClass | LengthPair) -> str:
    """The range of tokens, `12-15`, or one number."""
    return f"{each.least:,}-{each.most:,}" if each.most > each.least else f"{each.least:,}"


def written(scores: CorpusScores, in_tokens: bool) -> Callable[[float], str]:
    """The format function for a value of a text or a mean."""
    if in_tokens:
        return lambda value: form_of_tokens(float(np.exp(value)))
    return partial(measured.written, scores.scores)


def _furthest(result: Corpus, best: Place, say: Said) -> Ranking:
    scores, in_tokens = result.main, bool(say.facts["tokens"])
    mean = float(scores.values[best])
    found = scores.furthest(best)
    texts = [result.texts[number] for number, _ in found]
    alike = [
        _others_as_long(result, each, value, best) for each, (_, value) in zip(texts, found, strict=True)
    ]
    spread = float(scores.error[best] * np.sqrt(scores.count[best]))
    form = _told_apart(written(scores, in_tokens), mean, spread, in_tokens)
    away = [(value - mean) / spread if spread > 0 else np.nan for _, value in found]
    return Ranking(
        title=say("furthest_title", form(mean)),
        of="text",
        names=tuple(each.place for each in texts),
        table=Table(
            Column("value", [value for _, value in found], "it has", form),
            Column("away", away, "deviations", _tenth, say("says_away")),
            Column("of_length", alike, "others as long", form, say("says_alike")),
            Column("tokens", [each.tokens for each in texts], "tokens", "{:,}".format),
            Column("text", [fit(" ".join(each.text.split()), _SHOWN) for each in texts], "text"),
        ),
    )


def _told_apart(
    form: Callable[[float], str], mean: float, spread: float, in_tokens: bool
) -> Callable[[float], str]:
    if not spread > 0 or form(mean + spread) != form(mean - spread):
        return form
    turned = np.exp if in_tokens else float
    if not (apart := abs(float(turned(mean + spread) - turned(mean)))) > 0:
        return form
    decimals = 1 - math.floor(math.log10(apart))
    return lambda value: cell(float(turned(value)), decimals)


def _others_as_long(result: Corpus, text: CorpusText, value: float, best: Place) -> float:
    """Mean of the head over the other texts of this text's length class; NaN for none."""
    for i, each in enumerate(result.lengths):
        if each.least <= text.tokens <= each.most:
            mean, _, count = (float(part[(i, *best)]) for part in result.main.of_lengths)
            return (mean * count - value) / (count - 1) if count > 1 else np.nan
    return np.nan


def _by_length(result: Corpus, best: Place, say: Said) -> Curve:
    scores, in_tokens = result.main, bool(say.facts["tokens"])
    turned = np.exp if in_tokens else np.asarray
    form: Callable[[Any], str] = form_of_tokens if in_tokens else partial(measured.written, scores.scores)
    mean, error, count = scores.of_lengths
    there = [i for i in range(len(result.lengths)) if count[(i, *best)] > 0]
    classes = [result.lengths[i] for i in there]
    own, off = (np.array([each[(i, *best)] for i in there]) for each in (mean, error))
    values = np.asarray(turned(own), float)
    errors = values * off if in_tokens else off
    low, high = (known(turned(own + sign * Z * off)) for sign in (-1, 1))
    every = [float(turned(np.nanmean(mean[i]))) for i in there]
    head = named(result, best)
    ends = [(form(float(values[i])), length(classes[i])) for i in (0, -1)] if there else []
    return Curve(
        title=say("length_title", ends),
        of="tokens",
        names=tuple(map(length, classes)),
        table=Table(
            Column("texts", [int(count[(i, *best)]) for i in there], "texts", "{:,}".format),
            Column("mean", list(map(float, values)), head, form),
            Column("error", known(errors), "± standard error", error_of, say("says_of_length")),
            Column("every", every, "mean of heads", form, say("says_every")),
        ),
        places=tuple(each.mean for each in classes),
        measured=say("what"),
        lines=(
            Line("band", "own", "95 % interval", low, high),
            Line("line", "own", head, list(map(float, values))),
            Line("line", "other", "mean of heads", every),
        ),
    )


def known(values: np.ndarray) -> list[float | None]:
    """The numbers as a list, with None for NaN."""
    return [None if np.isnan(each) else float(each) for each in values]


_FIRST = 10


def scattered(result: Corpus, say: Said) -> Iterator[Ranking | Curve]:
    """Ranking of the first heads by the main measure with quantiles, and a curve of all heads by layer.

    None of a measure that is a class, nor where heads are ranked by a link.
    """
    main, places = result.main, measured.ranked(result.main.scores)
    if main.agreement is not None or not places or result.linked:
        return
    in_tokens = bool(say.facts["tokens"])
    turned: Callable[[Any], Any] = np.exp if in_tokens else float
    form = form_of_tokens if in_tokens else partial(measured.written, main.scores)
    first = places[:_FIRST]
    means = [float(turned(main.values[each])) for each in first]
    low, high = ([float(turned(main.quantiles[level][each])) for each in first] for level in (0, -1))
    errors = [float(main.error[each] * (turned(main.values[each]) if in_tokens else 1.0)) for each in first]
    yield Ranking(
        title=say("first_title", len(first)),
        of="head",
        names=tuple(named(result, each) for each in first),
        table=Table(
            Column("mean", means, "mean", form),
            Column("error", errors, "± standard error", error_of, "over texts"),
            Column("low", low, "5 %", form),
            Column("high", high, "95 %", form, say("says_high")),
        ),
        measured=say("what"),
        marks=(
            Mark("span", "own", "5 to 95 % of the texts", low, high),
            Mark("dot", "own", "mean over texts", means),
        ),
        hidden=len(places) - len(first),
    )
    if len(result.layers) > 1:
        values = turned(main.values) if in_tokens else main.values
        dots = [[float(each) for each in row if not np.isnan(each)] for row in values]
        layers = [float(np.mean(row)) if row else None for row in dots]
        yield Curve(
            title=say("layers_title"),
            of="layer",
            names=tuple(f"L{each}" for each in result.layers),
            table=Table(Column("mean", layers, "mean of heads", form)),
            places=tuple(map(float, result.layers)),
            named=True,
            measured=say("what"),
            lines=(
                Line("points", "own", "each head", dots),
                Line("line", "own", "mean of its heads", layers),
            ),
        )
