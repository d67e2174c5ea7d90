"""One word in many texts: how alike it is in each pair, and layer by layer how far labels part it."""

from collections import Counter
from collections.abc import Iterator
from itertools import count

import numpy as np

from attnscope.errors import listed
from attnscope.printable import word
from attnscope.render.kit.command import asking_of_model, looked_at
from attnscope.render.kit.numbers import cell, signed_cell
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Curve, Matrix, Names
from attnscope.render.sheet.said import attention, departures, marked_word, named, proof
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Kind, Special
from attnscope.results.scores import ordered
from attnscope.verbs.compare.senses_result import LEVEL, Senses, Usage, splits_of

_ALIKE = Scale(-1.0, 1.0, "signed", ("opposite", "the same"))
_AROUND = 38  # characters of a text on each side of the word
_LONGEST = 300  # characters of two texts that a command still carries
_PARTS = ("within", "between", "control_mean", "below")
_cosine, change = cell, signed_cell  # of cosines: what two decimals do not show is nothing


def sheet(result: Senses, focus: Focus = WHOLE) -> Sheet:
    order, say = _by_label(result), said(result)
    curve = _by_layer(result, say) if result.separation is None else _parted(result, say, focus.verbose)
    seed = () if result.separation is None or not result.separation.seed else (result.separation.seed,)
    return Sheet(
        title=say("title"),
        setting=f"{model_words(result.provenance)} · {attention(result.kind, '')} · {say('setting')}",
        origins=(result.provenance,),
        answer=say(result.case),
        blocks=(curve, _pairs(result, say, order)),
        table=lambda: Table.of("fact layer head text_a text_b value", _records(result)),
        control=say("control"),
        notes=tuple(say.lines("notes")),
        legend=(say("legend"),),
        details=tuple(say.lines("details")),
        proof=proof(result.certified, "head", say("all_texts")),
        departs=(*departures(result.by, Special.SHOW), *(f"seed {each}" for each in seed)),
        main=curve,
        record=tuple(("text", f"{i} {_in_its_text(each)}") for i, each in enumerate(result.usages, start=1)),
        next=_next(result, say),
    )


def said(result: Senses) -> Said:
    """The words of `compare` about one word in many texts."""
    parted, i = result.separation, result.shown
    most, least = result.extremes(i)
    counts, every = Counter(usage.label for usage in result.usages), enumerate(result.usages, start=1)
    best = None
    if parted is not None and len(result.heads) > 1:
        best = next(iter(ordered(parted.heads_excess)), (0, 0))
    facts = {
        "word": f"“{result.question}”",
        "texts": len(result.usages),
        "layer": result.layers[i],
        "heads": len(result.heads),
        "head": result.heads[0],
        "alike": f"{most[0] + 1} and {most[1] + 1}",
        "alike_cosine": float(result.cosines[i][most]),
        "unlike": f"{least[0] + 1} and {least[1] + 1}",
        "unlike_cosine": float(result.cosines[i][least]),
        # what labels part, beside other labels
        "groups": [counts[label] for label in result.labels],
        "within": parted and float(parted.within[i]),
        "between": parted and float(parted.between[i]),
        "splits": parted and f"{parted.splits:,}",
        "exact": parted is not None and parted.exact,
        "controls": 0 if parted is None else parted.controls,
        "controls_written": f"{0 if parted is None else parted.controls:,}",
        "reached": 0 if parted is None else parted.reached,
        "needed": round(1 / LEVEL),
        "enough": [] if parted is None else [_enough(len(result.labels))] * len(result.labels),
        "p": parted and parted.p,
        "least_p": parted and parted.least_p,
        "best_head": best and named(result, best),
        "best_gap": parted and best and change(float(parted.heads_gap[best])),
        "best_mean": parted and best and change(float(parted.heads_control_mean[best])),
        "best_reached": parted and f"{parted.heads_reached:,}",
        # how the word stands there
        "positions": len({each.position for each in result.usages}),
        "other_forms": [f"“{each.word}” in text {n}" for n, each in every if _is_other(result, each)],
    }
    return Said("senses", result, facts)


def _enough(groups: int) -> int:
    """How many texts of each of so many groups can tell."""
    return next(size for size in count(2) if splits_of([size] * groups) * LEVEL >= 1)


def _by_label(result: Senses) -> list[int]:
    ranks = [result.labels.index(each.label) if result.labels else 0 for each in result.usages]
    return list(map(int, np.argsort(ranks, kind="stable")))


def _in_its_text(usage: Usage) -> str:
    label = f"{usage.label} " if usage.label else ""
    place = usage.text.find(usage.word)
    if place < 0:
        return f"{label}“{usage.text[: 2 * _AROUND]}”"
    before, after = usage.text[:place], usage.text[place + len(usage.word) :]
    before = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
    return f"{label}“{marked_word(before, usage.word, after)}”"


def _pairs(result: Senses, say: Said, order: list[int]) -> Matrix:
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
        Column("within", within, "within", _cosine, say("within_says"), _ALIKE),
        Column("between", between, "between", _cosine, say("between_says"), _ALIKE),
        Column("gap", gap, say("gap") if whole else "", change, spared=1),
        Column("above_control", above, "above control", change,
               say("above_says")),
        Column("excess", parted.excess.tolist(), "in spreads", _cosine,
               say("excess_says")),
        Column("control_mean", mean, "mean", change, say("control_says"), under=under),
        Column("below", parted.below.tolist(), "below", says=say("below_says"), told=below, under=under),
    ]  # fmt: skip
    if len(result.heads) > 1 and whole:
        best = [_best(result, i) for i in range(len(result.layers))]
        gaps = [float(parted.heads_gap[i, j]) for i, j in enumerate(best)]
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
    return _curve(result, say("parted_title"), Table(*columns), lines)


def _by_layer(result: Senses, say: Said) -> Curve:
    first, second = np.triu_indices(len(result.usages), 1)
    values = result.cosines[:, first, second]
    means = np.nanmean(values, axis=1).tolist()
    alike, least = zip(*(_extremes(result, i) for i in range(len(result.layers))), strict=True)
    columns = (
        Column("mean", means, "mean", _cosine, say("pairs_says"), _ALIKE),
        Column("alike", alike, "most alike", says=say("two_texts")),
        Column("least", least, "least alike"),
    )
    lines = (
        Line("band", "query", say("all_pairs"), np.nanmin(values, 1).tolist(), np.nanmax(values, 1).tolist()),
        Line("line", "query", say("mean_of_pairs"), means),
    )
    return _curve(result, say("alike_title"), Table(*columns), lines)


def _curve(result: Senses, title: str, table: Table, lines: tuple[Line, ...]) -> Curve:
    lowest = min(end for each in lines for end in each.ends())
    return Curve(
        title=title,
        of="layer",
        names=tuple(f"L{layer}" for layer in result.layers),
        table=table,
        places=tuple(map(float, result.layers)),
        measured="cosine",
        lines=lines,
        axis=(min(lowest - 0.05, 0.0), 1.05),
        chosen=frozenset({result.shown}),
    )


def _best(result: Senses, i: int) -> int:
    assert result.separation is not None, "only where there are groups"
    return int(np.nan_to_num(result.separation.heads_excess[i], nan=-np.inf).argmax())


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


def _extremes(result: Senses, i: int) -> tuple[str, str]:
    """`1 and 4 (.92)`: the two texts that are most alike in layer number `i`, and the two that are least."""
    most, least = (
        f"{a + 1} and {b + 1} ({_cosine(float(result.cosines[i, a, b]))})" for a, b in result.extremes(i)
    )
    return most, least


def _is_other(result: Senses, usage: Usage) -> bool:
    """Whether the text has another form of the word than was asked for."""
    asked = result.question
    return asked.isalpha() and not result.by.is_long and usage.word.lower() != asked.lower()
