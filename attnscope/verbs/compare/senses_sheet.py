"""The sheet of one word in many texts: cosines of pairs, and how far labels part them by layer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from attnscope.errors import listed
from attnscope.printable import word
from attnscope.render.kit.command import asking_of_model, looked_at
from attnscope.render.kit.numbers import cell, signed_cell
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Curve, Matrix, Names
from attnscope.render.sheet.said import attention, departures, named, proof
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Line, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Special
from attnscope.results.scores import ordered
from attnscope.verbs.compare.sheet import by_layer, in_its_text
from attnscope.verbs.compare.texts_result import LEVEL, Senses, Usage, splits_of

_ALIKE = Scale(-1.0, 1.0, "signed", ("opposite", "the same"))
_AROUND = 38  # characters of a text on each side of the word
_LONGEST = 300  # characters of two texts that a command still carries
_PARTS = ("within", "between", "control_mean", "below")
change = signed_cell  # of cosines: what two decimals do not show is nothing


def sheet(result: Senses, focus: Focus = WHOLE) -> Sheet:
    say, parted = said(result), result.separation
    seed = (f"seed {parted.seed}",) if parted and parted.seed else ()
    curve = _by_layer(result, say) if parted is None else _parted(result, say, focus.verbose)
    return saying(
        say,
        setting=f"{model_words(result.provenance)} · {attention(result.kind, '')} · {say('setting')}",
        blocks=(curve, _pairs(result, say)),
        table=lambda: Table.of("fact layer head text_a text_b value", _records(result)),
        notes=tuple(say.lines("notes")),
        details=tuple(say.lines("details")),
        proof=proof(result.certified, "head", say("all_texts")),
        departs=(*departures(result.by, Special.SHOW), *seed),
        main=curve,
        record=tuple(("text", f"{i} {_in_its_text(each)}") for i, each in enumerate(result.usages, start=1)),
        next=_next(result, say),
    )


def said(result: Senses) -> Said:
    """A `Said` that fills the sentence templates about one word in many texts with its facts."""
    parted, i, groups = result.separation, result.shown, len(result.labels)
    most, least = result.extremes(i)
    counts, every = Counter(usage.label for usage in result.usages), enumerate(result.usages, start=1)
    best, enough = None, 0
    if parted is not None:
        best = next(iter(ordered(parted.heads_excess)), (0, 0)) if len(result.heads) > 1 else None
        enough = next(size for size in count(2) if splits_of([size] * groups) * LEVEL >= 1)
    facts = {
        "word": f"“{result.question}”",
        "layer": result.layers[i],
        "alike": f"{most[0] + 1} and {most[1] + 1}",
        "alike_cosine": float(result.cosines[i][most]),
        "unlike": f"{least[0] + 1} and {least[1] + 1}",
        "unlike_cosine": float(result.cosines[i][least]),
        # what labels part, beside other labels
        "groups": [counts[label] for label in result.labels],
        "within": parted and float(parted.within[i]),
        "between": parted and float(parted.between[i]),
        "exact": parted is not None and parted.exact,
        "controls": 0 if parted is None else parted.controls,
        "needed": round(1 / LEVEL),
        "enough": [enough] * groups,
        "p": parted and parted.p,
        "best_head": best and named(result, best),
        "best_gap": parted and best and change(float(parted.heads_gap[best])),
        "best_mean": parted and best and change(float(parted.heads_control_mean[best])),
        # how the word stands there
        "positions": len({each.position for each in result.usages}),
        "other_forms": [f"“{each.word}” in text {n}" for n, each in every if _is_other(result, each)],
    }
    return Said("senses", result, facts)


def _in_its_text(usage: Usage) -> str:
    label, place = f"{usage.label} " if usage.label else "", usage.text.find(usage.word)
    if place < 0:
        return f"{label}“{usage.text[: 2 * _AROUND]}”"
    return f"{label}“{in_its_text(usage.text, usage.word, place, _AROUND)}”"


def _pairs(result: Senses, say: Said) -> Matrix:
    order = sorted(
        range(len(result.usages)), key=lambda i: (*result.labels, "").index(result.usages[i].label)
    )
    labels, numbers = [result.usages[i].label for i in order], tuple(i + 1 for i in order)
    return Matrix(
        title=say("pairs_title"),
        words=("text", "text"),
        rows=Names(tuple(_in_its_text(result.usages[i]) for i in order), numbers),
        columns=Names(("",) * len(order), numbers),
        values=result.cosines[result.shown][np.ix_(order, order)],
        scale=_ALIKE,
        form=cell,
        groups=tuple(i for i in range(1, len(order)) if labels[i] != labels[i - 1]),
    )


def _parted(result: Senses, say: Said, whole: bool) -> Curve:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    within, between, gap, mean, above = (
        each.tolist()
        for each in (parted.within, parted.between, parted.gap, parted.control_mean, parted.above_control)
    )
    under = say("other_labels")
    below = [f"{int(each)} of {parted.controls:,}" for each in parted.below]
    columns = [
        Column("within", within, "within", cell, say("within_says"), _ALIKE),
        Column("between", between, "between", cell, say("between_says"), _ALIKE),
        Column("gap", gap, say("gap") if whole else "", change, spared=1),
        Column("above_control", above, "above control", change,
               say("above_says")),
        Column("excess", parted.excess.tolist(), "in spreads", cell,
               say("excess_says")),
        Column("control_mean", mean, "mean", change, say("control_says"), under=under),
        Column("below", parted.below.tolist(), "below", says=say("below_says"), told=below, under=under),
    ]  # fmt: skip
    if len(result.heads) > 1 and whole:
        best = np.nan_to_num(parted.heads_excess, nan=-np.inf).argmax(axis=1)
        gaps = parted.heads_gap[np.arange(len(best)), best].tolist()
        columns += [
            Column("best", [f"H{result.heads[j]}" for j in best], "best head"),
            Column("best_gap", gaps, say("gap"), change),
        ]
    lines = (
        Line("line", "query", say("one_group"), within),
        Line("line", "other", say("two_groups"), between),
        Line("line", "control", "gap", gap),
        Line("dashed", "peers", say("shuffled_gap"), mean),
    )
    return _curve(result, say("parted_title"), columns, lines)


def _by_layer(result: Senses, say: Said) -> Curve:
    first, second = np.triu_indices(len(result.usages), 1)
    values = result.cosines[:, first, second]
    means = np.nanmean(values, axis=1).tolist()
    alike, least = zip(
        *(
            [f"{a + 1} and {b + 1} ({cell(float(cosines[a, b]))})" for a, b in result.extremes(i)]
            for i, cosines in enumerate(result.cosines)
        ),
        strict=True,
    )
    columns = (
        Column("mean", means, "mean", cell, say("pairs_says"), _ALIKE),
        Column("alike", alike, "most alike", says=say("two_texts")),
        Column("least", least, "least alike"),
    )
    lines = (
        Line("band", "query", say("all_pairs"), np.nanmin(values, 1).tolist(), np.nanmax(values, 1).tolist()),
        Line("line", "query", say("mean_of_pairs"), means),
    )
    return _curve(result, say("alike_title"), columns, lines)


def _curve(result: Senses, title: str, columns: Sequence[Column], lines: Sequence[Line]) -> Curve:
    lowest = min(end for each in lines for end in each.ends())
    axis, chosen = (min(lowest - 0.05, 0.0), 1.05), frozenset({result.shown})
    return by_layer(result.layers, title, "cosine", columns, lines, axis=axis, chosen=chosen)


def _next(result: Senses, say: Said) -> Next | None:
    if result.kind is Kind.CROSS or "decoder_input_ids" in result.provenance.inputs:
        return None
    _, (a, b) = result.extremes(result.shown)
    first, second = result.usages[a], result.usages[b]
    texts = [word(each.text) for each in (first, second) if each.text.isprintable() and each.text[:1] != "-"]
    if len(texts) < 2 or sum(map(len, texts)) > _LONGEST:
        return None
    named = [_named(result, each) for each in (first, second)]
    options = ["--word", word(named[0]), *(["--word-b", word(named[1])] if named[0] != named[1] else [])]
    asked = asking_of_model(f"compare {' '.join(texts)}", result.provenance, *options)
    return Next(say("look_at"), f"{asked}{looked_at(result.by, Special.SHOW)}")


def _named(result: Senses, usage: Usage) -> str:
    field = result.question.casefold().startswith("field:")
    if field and usage.pieces and not result.by.joins:
        return f"pos:{listed(usage.pieces)}"
    return usage.word if field or _is_other(result, usage) else result.question


def _records(result: Senses) -> Iterator[tuple[object, ...]]:
    first, second = np.triu_indices(len(result.usages), 1)
    for i, layer in enumerate(result.layers):
        for a, b in zip(first.tolist(), second.tolist(), strict=True):
            yield "cosine", layer, "together", a + 1, b + 1, float(result.cosines[i, a, b])
        if (parted := result.separation) is None:
            continue
        for fact in _PARTS:
            yield fact, layer, "together", "", "", float(getattr(parted, fact)[i])
        for j, head in enumerate(result.heads):
            yield "within", layer, head, "", "", float(parted.heads_within[i, j])
            yield "between", layer, head, "", "", float(parted.heads_between[i, j])


def _is_other(result: Senses, usage: Usage) -> bool:
    """Whether the text has another form of the word than was asked for, such as a plural."""
    asked = result.question
    return asked.isalpha() and not result.by.is_long and usage.word.lower() != asked.lower()
