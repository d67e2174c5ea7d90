"""One word in many texts: how alike it is in each pair, and layer by layer how far labels part it."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from attnscope.errors import listed
from attnscope.printable import word
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import cell, counted, signed_cell, significant
from attnscope.render.kit.words.command import asking_of_model, looked_at
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Curve, Matrix, Names
from attnscope.render.sheet.heads import ordered
from attnscope.render.sheet.said import attention, departures, marked_word, named, proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Table
from attnscope.results import Kind, Senses, Special
from attnscope.results.claims.senses import LEVEL, Case, Separation, Usage, splits_of

_ALIKE = Scale(-1.0, 1.0, "signed", ("opposite", "the same"))
_AROUND = 38  # characters of a text on each side of the word
_LONGEST = 300  # characters of two texts that a command still carries
_PARTS = ("within", "between", "control_mean", "below")
_cosine, change = cell, signed_cell  # of cosines: what two decimals do not show is nothing
_FLOOR = 8  # texts with labels: of fewer the answer says how few


def sheet(result: Senses, focus: Focus = WHOLE) -> Sheet:
    order = _by_label(result)
    curve = _by_layer(result) if result.separation is None else _parted(result, focus.verbose)
    heads = "all heads of a layer as one" if len(result.heads) > 1 else f"H{result.heads[0]}"
    asked = f"“{result.question}” in {counted(len(result.usages), 'text')}"
    groups = f", {counted(len(result.labels), 'group')}" if result.labels else ""
    seed = () if result.separation is None or not result.separation.seed else (result.separation.seed,)
    return Sheet(
        title=asked + groups,
        setting=f"{model_words(result.provenance)} · {attention(result.kind, '')} · cosines of the output "
        f"vectors, {heads}",
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(curve, _pairs(result, order)),
        table=lambda: Table.of("fact layer head text_a text_b value", _facts(result)),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=(
            f"cosine: between the vectors of “{result.question}” in two texts, 1 = same direction; output: "
            f"of the heads, before the output projection, {heads}",
        ),
        details=tuple(_details(result)),
        proof=proof(result.certified, "head", ", all texts counted"),
        departs=(*departures(result.by, Special.SHOW), *(f"seed {each}" for each in seed)),
        main=curve,
        record=tuple(("text", f"{i} {_in_its_text(each)}") for i, each in enumerate(result.usages, start=1)),
        next=_next(result),
    )


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


def _pairs(result: Senses, order: list[int]) -> Matrix:
    labels, numbers = [result.usages[i].label for i in order], tuple(i + 1 for i in order)
    return Matrix(
        title=f"cosine of each pair of texts, L{result.layers[result.shown]}",
        words=("text", "text"),
        rows=Names(tuple(_in_its_text(result.usages[i]) for i in order), numbers),
        columns=Names(("",) * len(order), numbers),
        values=result.cosines[result.shown][np.ix_(order, order)],
        scale=_ALIKE,
        form=cell,
        groups=tuple(i for i in range(1, len(order)) if labels[i] != labels[i - 1]),
    )


def _parted(result: Senses, whole: bool) -> Curve:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    within, between, gap, mean, above = (
        each.tolist()
        for each in (parted.within, parted.between, parted.gap, parted.control_mean, parted.above_control)
    )
    under = "other labels"
    below = [f"{int(each)} of {parted.controls:,}" for each in parted.below]
    columns = [
        Column("within", within, "within", _cosine, "mean cosine of pairs with one label", _ALIKE),
        Column("between", between, "between", _cosine, "of pairs with two labels", _ALIKE),
        Column("gap", gap, "within less between" if whole else "", change, spared=1),
        Column("above_control", above, "above control", change,
               "within less between, less the mean of that with other labels"),
        Column("excess", parted.excess.tolist(), "in spreads", _cosine, "above control, in the "
               "standard deviation of this layer over other labels: the largest is the clearest layer"),
        Column("control_mean", mean, "mean", change, "within less between, with other labels", under=under),
        Column("below", parted.below.tolist(), "below", says="how many other labels part the word less in "
               "this layer", told=below, under=under),
    ]  # fmt: skip
    if len(result.heads) > 1 and whole:
        best = [_best(result, i) for i in range(len(result.layers))]
        gaps = [float(parted.heads_gap[i, j]) for i, j in enumerate(best)]
        columns += [
            Column("best", [f"H{result.heads[j]}" for j in best], "best head"),
            Column("best_gap", gaps, "within less between", change),
        ]
    lines = (
        Line("line", "query", "pairs of one group", within),
        Line("line", "other", "pairs of two groups", between),
        Line("line", "control", "gap", gap),
        Line("dashed", "peers", "gap of shuffled labels", mean),
    )
    return _curve(result, "how far the groups lie apart", Table(*columns), lines)


def _by_layer(result: Senses) -> Curve:
    first, second = np.triu_indices(len(result.usages), 1)
    values = result.cosines[:, first, second]
    means = np.nanmean(values, axis=1).tolist()
    alike, least = zip(*(_extremes(result, i) for i in range(len(result.layers))), strict=True)
    columns = (
        Column("mean", means, "mean", _cosine, "of all pairs", _ALIKE),
        Column("alike", alike, "most alike", says="two texts by their numbers, and their cosine"),
        Column("least", least, "least alike"),
    )
    lines = (
        Line("band", "query", "all pairs", np.nanmin(values, 1).tolist(), np.nanmax(values, 1).tolist()),
        Line("line", "query", "mean of all pairs", means),
    )
    return _curve(result, "how alike the texts are", Table(*columns), lines)


def _curve(result: Senses, title: str, table: Table, lines: tuple[Line, ...]) -> Curve:
    lowest = min(end for each in lines for end in each.ends())
    return Curve(
        title=f"{title}, layer by layer",
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


def _next(result: Senses) -> Next | None:
    if result.kind is Kind.CROSS or "decoder_input_ids" in result.provenance.inputs:
        return None
    _, (a, b) = result.extremes(result.shown)
    first, second = result.usages[a], result.usages[b]
    texts = [word(each.text) for each in (first, second) if each.text.isprintable() and each.text[:1] != "-"]
    if len(texts) < 2 or sum(map(len, texts)) > _LONGEST:
        return None
    named = [_named(result, each) for each in (first, second)]
    options = ["--word", word(named[0]), *(["--word-b", word(named[1])] if named[0] != named[1] else [])]
    asked = asking_of_model(f"compare {' '.join(texts)}", result.provenance, result.kind, "", *options)
    looking = looked_at(result.by, Special.SHOW)
    return Next("what does it look at in the two that are least alike?", f"{asked}{looking}")


def _named(result: Senses, usage: Usage) -> str:
    field = result.question.casefold().startswith("field:")
    if field and usage.pieces and not result.by.joins:
        return f"pos:{listed(usage.pieces)}"
    return usage.word if field or _is_other(result, usage) else result.question


def _facts(result: Senses) -> Iterator[tuple[object, ...]]:
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


def _answer(result: Senses) -> str:
    """The sentence for the case that it is, and that there are few texts."""
    return " ".join(each for each in (_SAID[result.case](result), _few(result)) if each)


def _unlabelled(result: Senses) -> str:
    most, least = _extremes(result, result.shown)
    return (
        f"In layer {result.layers[result.shown]} the texts {most} are most alike in “{result.question}”, "
        f"{least} least."
    )


def _cosines(result: Senses) -> str:
    i, parted = result.shown, result.separation
    assert parted is not None, "only where there are groups"
    within, between = (_cosine(float(each[i])) for each in (parted.within, parted.between))
    return f"in layer {result.layers[i]}, cosine {within} within, {between} between"


def _few_texts(result: Senses) -> str:
    parted, texts = result.separation, len(result.usages)
    assert parted is not None, "only where there are groups"
    each, possible = _enough(len(result.labels))
    ways = parted.splits
    groups = Counter(usage.label for usage in result.usages)
    there = " + ".join(str(groups[label]) for label in result.labels)
    wanted = " + ".join([str(each)] * len(result.labels))
    return (
        f"{counted(texts, 'text')} are too few to tell: {there} texts can be split in only {ways} ways, so "
        f"the best possible is 1 in {ways} (with {wanted} it is 1 in {possible}). Here "
        f"“{result.question}” is parted most clearly {_cosines(result)}; {_so_far(parted)}."
    )


def _so_far(parted: Separation) -> str:
    of = f"{parted.reached or 'none'} of {'the ' if parted.exact else ''}{_labelings(parted)}"
    verb = "parts" if parted.reached < 2 else "part"
    return f"{of} {verb} it as well in {'some' if parted.reached else 'any'} layer"


def _labelings(parted: Separation) -> str:
    return f"{parted.controls:,} {'other splits' if parted.exact else 'shufflings of the labels'}"


def _enough(groups: int) -> tuple[int, int]:
    """How many texts of each of so many groups can tell, and in how many ways these can be split."""
    each = next(size for size in count(2) if splits_of([size] * groups) * LEVEL >= 1)
    return each, splits_of([each] * groups)


def _few_controls(result: Senses) -> str:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    return (
        f"{counted(parted.controls, 'shuffling')} {'is' if parted.controls == 1 else 'are'} too few to tell: "
        f"{round(1 / LEVEL) - 1} are needed. “{result.question}” is parted most clearly {_cosines(result)}."
    )


def _is_parted(result: Senses) -> str:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    return f"The labels part “{result.question}”: {_cosines(result)}; {_so_far(parted)}."


def _cannot_tell(result: Senses) -> str:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    return (
        f"The labels do not part “{result.question}” better than other labels would: they come nearest "
        f"{_cosines(result)}, but {_so_far(parted)}."
    )


_SAID: dict[Case, Callable[[Senses], str]] = {
    Case.UNLABELLED: _unlabelled,
    Case.FEW_TEXTS: _few_texts,
    Case.FEW_CONTROLS: _few_controls,
    Case.PARTED: _is_parted,
    Case.CANNOT_TELL: _cannot_tell,
}


def _few(result: Senses) -> str:
    told = result.case in (Case.PARTED, Case.CANNOT_TELL) and len(result.usages) < _FLOOR
    return f"Only {len(result.usages)} texts." if told else ""


def _control(result: Senses) -> str:
    """What the labels are held against; the best layer against the best of every other labeling."""
    parted = result.separation
    if parted is None:
        return "none without labels; lines of LABEL, tab and text have one"
    if parted.exact:
        others = f"every other way to put the labels on the texts ({parted.controls:,})"
    else:
        others = f"the labels shuffled among the texts {parted.controls:,} times"
    return f"{others}; of each only its clearest layer counts"


def _notes(result: Senses) -> Iterator[str]:
    """What must be known to read the numbers."""
    if (parted := result.separation) is not None and len(result.heads) > 1:
        best = next(iter(ordered(parted.heads_excess)), (0, 0))
        own, mean = (change(float(each[best])) for each in (parted.heads_gap, parted.heads_control_mean))
        reached = f"in {parted.heads_reached:,} of {_labelings(parted)} some head stands as clear"
        yield f"one head: {named(result, best)} {own}, with other labels {mean}; {reached} of its own"
    if len({each.position for each in result.usages}) > 1:
        yield "the word stands at different positions: these are in its vectors too"
    every = enumerate(result.usages, start=1)
    other = [f"“{each.word}” in text {i}" for i, each in every if _is_other(result, each)]
    if other:
        yield f"taken in another form: {', '.join(other)}"


def _details(result: Senses) -> Iterator[str]:
    """How often other labels do as well, beside the least that could have come out."""
    if (parted := result.separation) is not None:
        how = f"exact, over all {parted.splits:,} splits" if parted.exact else "of shuffled labels"
        least = significant(parted.least_p)
        yield f"p {significant(parted.p)} ({how}; {least} is the least that could have come out)"


def _is_other(result: Senses, usage: Usage) -> bool:
    """Whether the text has another form of the word than was asked for."""
    asked = result.question
    return asked.isalpha() and not result.by.is_long and usage.word.lower() != asked.lower()
