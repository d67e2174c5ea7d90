"""One word held against itself: what it attends to on both sides, and how alike its vectors are by layer."""

import math
from collections.abc import Iterator
from functools import partial
from typing import cast

import numpy as np
from jaxtyping import Float

from attnscope.errors import listed
from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import cell, counted, number, weight
from attnscope.render.kit.scale import by_root
from attnscope.render.kit.words.certificate import certificate_line, certificate_words
from attnscope.render.kit.words.command import looked_at, opening_head
from attnscope.render.kit.words.header import CROSS_ROWS, attention_words, model_words
from attnscope.render.kit.words.weights import SPANS, WITHOUT_SPECIAL, joined_words, key_groups, spans
from attnscope.render.sheet.blocks import Beside, Curve, Ranking
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.heads import HeadGrid
from attnscope.render.sheet.said import marked_word, proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Mark, Table, Tint
from attnscope.results import Between, Comparison, Kind, Side, Special, Verdict

MOST_KEYS = 16
_MATTERS = 0.05  # of the largest weight of a row: a bar of less is hardly one
_ALIKE, _APART = Scale(-1.0, 1.0, "signed"), Scale(0.0, math.log(2))
_FACTS = "fact side layer_a layer_b head key token value"
_DIVERGENCE = "Jensen-Shannon divergence in nats, 0 to .693"
_DECIMALS = 3  # decimals of a weight beside its bar
_AROUND = 160  # characters of a long text on each side of the word
_STILL = 0.2  # of a cosine: how much more alike values have to be than what differs most
_UNCONTROLLED = "No control yet: two texts of one meaning may differ as much."
cosine = partial(number, decimals=3)
_two = cell


def sheet(result: Comparison, focus: Focus = WHOLE) -> Sheet:
    kinds = " and ".join(dict.fromkeys(attention_words(side.head.kind) for side in result.sides))
    curve = _by_layer(result) if result.similarities or len(result.layers) > 1 else None
    by_head = () if curve or len(result.heads) < 2 or result.divergence is None else (_by_head(result),)
    rows = [_row(result, letter, side) for letter, side in zip("AB", result.sides, strict=True)]
    return Sheet(
        title=" · ".join((subject(result), *_looks(result))),
        setting=f"{kinds} · {models(result)}",
        origins=tuple(side.head.provenance for side in result.sides[: 1 + _two_origins(result)]),
        answer=answer(result),
        blocks=(*by_head, Beside((*((curve,) if curve else ()), *rows))),
        table=lambda: Table.of(_FACTS, _facts(result)),
        texts=tuple(_texts(result)),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        proof=tuple(_proof(result, focus.verbose)),
        main=curve,
        whole="only one layer is compared, there is no curve to draw: this picture has several panels",
        summary=(heads(result),),
        record=tuple(_record(result)),
        departs=tuple(_looks(result)),
        more=(*_shaded(result), *_grids(result)),
        next=_following(result),
    )


def _together(result: Comparison) -> str:
    count = len(result.heads)
    if count == 1:
        return f"H{result.heads[0]}"
    return (
        "all heads of a layer together" if count == result.a.head.heads else f"{count} chosen heads together"
    )


def _by_layer(result: Comparison) -> Curve:
    i, j = result.shown
    several, output, rows = len(result.heads) > 1, result.similarity("output"), result.divergence
    columns = [
        Column(each.vector, each.together.tolist(), each.vector, cosine, scale=_ALIKE)
        for each in result.similarities
    ]
    if several and output is not None:
        least = [_extreme(result, -each, each) for each in output.heads]
        columns.append(
            Column("least", least, "least alike", says="the head whose outputs have the smallest cosine")
        )
    if rows is not None and several:
        most = [_extreme(result, each, each) for each in rows.jensen_shannon]
        says = f"the head whose rows differ most, by {_DIVERGENCE}"
        columns.append(Column("apart", most, "furthest apart", says=says))
    elif rows is not None:
        apart = rows.jensen_shannon[:, 0].tolist()
        columns.append(Column("apart", apart, "rows apart", cosine, f"by {_DIVERGENCE}", _APART))
    lines = [
        Line("line", _tint(each.vector), each.vector, each.together.tolist()) for each in result.similarities
    ]
    dots, tint = _dots(result), _tint("output") if result.similarities else _tint("own")
    if several:
        of = "the output of each head" if result.similarities else "each head"
        lines.append(Line("points", tint, of, dots.tolist()))
    elif not result.similarities:
        lines.append(Line("line", tint, "", dots[:, 0].tolist()))
    shown = [float(dots[i, j]) if row == i else None for row in range(len(result.layers))]
    lines.append(Line("ring", "control", "the head whose rows are shown", shown))
    lowest = min((end for each in lines for end in each.ends()), default=0.0)
    return Curve(
        title=f"cosine between the vectors of A and B, {_together(result)}"
        if result.similarities
        else "how far the rows of A and B are apart",
        of="layer",
        names=tuple(f"L{layer}" for layer, _ in result.layers),
        table=Table(*columns),
        places=tuple(float(layer) for layer, _ in result.layers),
        measured="cosine between A and B" if result.similarities else "Jensen-Shannon in nats",
        lines=tuple(lines),
        axis=(min(lowest, 0.0) - 0.07, 1.05) if result.similarities else (-0.02, math.log(2) + 0.02),
        chosen=frozenset({i}),
    )


def _tint(vector: str) -> Tint:
    return cast("Tint", vector)


def _dots(result: Comparison) -> Float[np.ndarray, "layer head"]:
    if result.similarities:
        return result.similarities[-1].heads
    assert result.divergence is not None, "drawn only where there is something to draw"
    return result.divergence.jensen_shannon


def _grids(result: Comparison) -> Iterator[HeadGrid]:
    layers = tuple(a for a, _ in result.layers)
    if (rows := result.divergence) is not None:
        apart, moved = rows.jensen_shannon, rows.total_variation
        yield HeadGrid("divergence of the rows", layers, result.heads, apart, _APART, cell, "nats")
        yield HeadGrid("total variation of the rows", layers, result.heads, moved, Scale(0.0, 1.0), cell)
    for each in result.similarities:
        title = f"cosine of the {each.vector} vectors"
        yield HeadGrid(title, layers, result.heads, each.heads, _ALIKE, cell)


def _extreme(
    result: Comparison, differing: Float[np.ndarray, " head"], shown: Float[np.ndarray, " head"]
) -> str:
    if np.isnan(differing).all():
        return "-"
    j = int(np.nanargmax(differing))
    return f"H{result.heads[j]} {cosine(float(shown[j]))}"


def _by_head(result: Comparison) -> Ranking:
    assert result.divergence is not None, "one text gives one sequence of tokens"
    nats, moved = (
        each[0].tolist() for each in (result.divergence.jensen_shannon, result.divergence.total_variation)
    )
    return Ranking(
        title="how far the rows of the two layers are apart",
        of="head",
        names=tuple(f"H{head}" for head in result.heads),
        table=Table(
            Column("apart", nats, "divergence", cosine, _DIVERGENCE, _APART),
            Column("moved", moved, "moved", cosine, "share of the weight, total variation"),
        ),
        measured="divergence in nats",
        marks=(Mark("bar", "own", "", nats),),
        written="apart",
        axis=(0.0, math.log(2)),
        chosen=frozenset({result.shown[1]}),
    )


def _row(result: Comparison, letter: str, side: Side) -> Ranking:
    keys, places = _keys(side), [group[0] for group in key_groups(side.looked_at)]
    places = list(side.key_tokens.positions) if side.key_tokens.of_sentences else places
    digits = len(str(max((places[key] for key in keys), default=0)))
    names = [f"{places[key]:>{digits}} {settled(side.key_tokens.names[key])}" for key in keys]
    weights = [float(side.weights[key]) if side.allowed[key] else math.nan for key in keys]
    others = [key for key in range(len(side.weights)) if key not in keys and side.allowed[key]]
    rest = [float(np.nansum(side.weights[others]))] if others else []
    names += [f"{' ' * digits} {counted(len(others), 'other')}"] if others else []
    full = max(float(np.nan_to_num(each.weights).max(initial=0.0)) for each in result.sides) or 1.0
    masked = [row for row, key in enumerate(keys) if not side.allowed[key]]
    return Ranking(
        title=f"{letter}, {side.head.name}: {_placed(side)} attends to",
        of="key",
        names=tuple(names),
        table=Table(Column("weight", [*weights, *rest], "weight", partial(weight, decimals=3))),
        says=" · ".join(_remarks(side)),
        measured="attention weight",
        marks=(Mark("bar", "own", "", [*weights, *([None] * len(rest))]),),
        written="weight",
        axis=(0.0, full),
        faint=frozenset({*masked, *([len(keys)] if others else [])}),
        chosen=frozenset(keys.index(key) for key in _own(side)),
    )


def _keys(side: Side) -> list[int]:
    weights = np.nan_to_num(side.weights)
    if len(weights) <= MOST_KEYS or not side.allowed.any():
        return sorted({*range(len(weights))[:MOST_KEYS], *_own(side)})
    least, order = _MATTERS * float(weights.max()), np.argsort(-weights, kind="stable")[:MOST_KEYS]
    return sorted({*(int(key) for key in order if weights[key] >= least), *_own(side)})


def _own(side: Side) -> list[int]:
    return [side.row] if side.query_tokens is side.key_tokens else []


def _proof(result: Comparison, verbose: bool) -> Iterator[tuple[Verdict, str]]:
    every = [each.verdict for side in result.sides for each in side.every_certificate]
    yield from proof(every, "head", ", both sides counted")
    for letter, side in zip("AB", result.sides, strict=True):
        own = side.head.certificate
        if verbose or not own.verdict.proved:
            yield own.verdict, f"{letter} {side.head.name} {certificate_line(own, verbose).plain}"


def _record(result: Comparison) -> Iterator[tuple[str, object]]:
    yield "verdict", result.verdict.value
    for letter, side in zip("ab", result.sides, strict=True):
        yield f"{letter} head", side.head.name
        yield f"{letter} word", _placed(side)
        yield f"{letter} certificate", certificate_words(side.head.certificate)
        yield f"{letter} model", f"{side.head.provenance.model} {side.head.provenance.source}"


def _facts(result: Comparison) -> Iterator[tuple[object, ...]]:
    for i, pair in enumerate(result.layers):
        for each in result.similarities:
            yield f"cosine {each.vector}", "", *pair, "together", "", "", float(each.together[i])
        for j, head in enumerate(result.heads):
            for each in result.similarities:
                yield f"cosine {each.vector}", "", *pair, head, "", "", float(each.heads[i, j])
            if result.divergence is not None:
                nats, moved = result.divergence.jensen_shannon[i, j], result.divergence.total_variation[i, j]
                yield "jensen-shannon nats", "", *pair, head, "", "", float(nats)
                yield "total variation", "", *pair, head, "", "", float(moved)
    layers = result.a.head.layer, result.b.head.layer
    for letter, side in zip("ab", result.sides, strict=True):
        firsts = [group[0] for group in key_groups(side.looked_at)]
        for key, label, value in zip(firsts, side.key_tokens.labels, side.weights, strict=True):
            yield "weight", letter, *layers, side.head.head, key, label, float(value)


def _shaded(result: Comparison) -> Iterator[Passage]:
    """What the word looks at on either side."""
    for letter, side in zip("AB", result.sides, strict=True):
        if side.key_tokens.texts:
            yield Passage(
                f"{letter}, {side.head.name}: {_placed(side)} looks at",
                side.key_tokens,
                np.where(side.allowed, side.weights, math.nan),
                by_root(),
                partial(weight, decimals=_DECIMALS),
                frozenset({side.row}) if side.query_tokens is side.key_tokens else frozenset(),
            )


def subject(result: Comparison) -> str:
    """The word and what differs: `“bank” in two texts`."""
    a, b = (side.word for side in result.sides)
    word = f"“{a}”" if a == b else f"“{a}” and “{b}”"
    if result.between is Between.LAYERS:
        return f"{word} in layers {result.a.head.layer} and {result.b.head.layer}"
    return f"{word} {'in two texts' if result.between is Between.TEXTS else 'under two models'}"


def _looks(result: Comparison) -> list[str]:
    """How both sides are looked at: `by words`, `special tokens hidden`."""
    told = [f"by {result.by.several}"] if result.by.joins else []
    told += ["special tokens hidden"] if result.special is Special.HIDE else []
    return told + (["without special tokens"] if result.special is Special.RENORMALISE else [])


def _two_origins(result: Comparison) -> bool:
    """Whether the sides come from two models, or from two ways of running one; not for their texts."""
    a, b = (side.head.provenance.of_no_text for side in result.sides)
    return a != b


def _texts(result: Comparison) -> Iterator[str]:
    """What a side is, its text with the word marked, and of cross-attention the text it attends to.

    What both sides read is told once, before them.
    """
    read = [(sentence(side), _attended(side)) for side in result.sides]
    apart = result.between is Between.TEXTS
    both = [a if a == b and not apart else "" for a, b in zip(*read, strict=True)]
    yield from filter(None, both)
    for letter, side, told in zip("AB", result.sides, read, strict=True):
        text, keys = ("" if shared else own for own, shared in zip(told, both, strict=True))
        yield f"{letter} " + " · ".join(filter(None, (side_words(result, side), text)))
        if keys:
            yield f"  {keys}"


def _attended(side: Side) -> str:
    told = side.head.key_tokens.sentence if side.head.kind is Kind.CROSS else ""
    return f"attends to “{told}”" if told else ""


def answer(result: Comparison) -> str:
    """What differs most and how far, by what differs between the sides; and that it has no control yet."""
    if result.between is Between.MODELS:
        return _of_models(result)
    return _of_layers(result) if result.between is Between.LAYERS else _of_texts(result)


def _of_texts(result: Comparison) -> str:
    a, b = (side.word for side in result.sides)
    both = f"the two “{a}”s" if a == b else f"“{a}” and “{b}”"
    output = result.similarity("output")
    if output is None:
        return f"{both[0].upper()}{both[1:]} are looked at in {heads(result)}."
    together = output.together
    if len(result.layers) == 1 or np.isnan(together).all():
        told = f"what its heads make of {both} has cosine {_two(together[0])} (1 = same direction)"
        return f"In layer {result.a.head.layer} {told}. {_UNCONTROLLED}"
    least = int(np.nanargmin(together))
    if together[least] >= 1 - 1e-6:
        return f"{both[0].upper()}{both[1:]} are the same in every layer: every cosine is 1.00."
    told = (
        f"{both[0].upper()}{both[1:]} differ most in layer {result.layers[least][0]}: what its heads make of "
        f"them has cosine {_two(together[least])} (1 = same direction)"
    )
    value = result.similarity("value")
    still = ""
    if value is not None and least and value.together[0] - together[least] > _STILL:
        first = result.layers[0][0]
        still = f" In layer {first} their value vectors are still alike ({_two(value.together[0])})."
    return f"{told}.{still} {_UNCONTROLLED}"


def _of_layers(result: Comparison) -> str:
    told = _rows_apart(result)
    a, b, head = result.a.head.layer, result.b.head.layer, result.a.head.head
    most = "most in " if len(result.heads) > 1 else "in "
    return (
        f"Between layers {a} and {b} what “{result.a.word}” looks at differs {most}H{head}: {told}. "
        "Heads of two layers have only their number in common."
    )


def _of_models(result: Comparison) -> str:
    i, j = result.shown
    name = heads(result)
    if not result.similarities and result.divergence is None:
        return "These vectors cannot be compared: the models share no space and read the text differently."
    if result.same:
        cosines = "every cosine is 1.000" if result.similarities else "no weight differs"
        return f"The two models are the same here: {cosines}, rounding aside."
    apart = ", ".join(each for each in (_outputs(result), _rows_apart(result)) if each)
    if (begins := result.begins) and (i, j) in begins:
        before = i * len(result.heads)
        also = f" with {counted(len(begins) - 1, 'other head')} of its layer" if len(begins) > 1 else ""
        same = f"the {counted(before, 'head')} of the layers before and the " if before else "the "
        others = f"{same}{counted(len(result.heads) - len(begins), 'other head')} of its layer"
        others = others[0].upper() + others[1:]
        return f"The two models begin to differ in {name}{also}: {apart}. {others} are the same."
    unlike = "" if result.similarities else " Their vectors cannot be compared: the models share no space."
    return f"The two models differ most in {name}: {apart}.{unlike}"


def _outputs(result: Comparison) -> str:
    output = result.similarity("output")
    return "" if output is None else f"its outputs have cosine {cosine(float(output.heads[result.shown]))}"


def _rows_apart(result: Comparison) -> str:
    if result.divergence is None:
        return ""
    return f"{weight(float(result.divergence.total_variation[result.shown]))} of its weight lies elsewhere"


def _control(result: Comparison) -> str:
    """What there is to hold it against: nothing here, and how to get it."""
    if result.between is Between.TEXTS:
        return "none yet; it takes several texts of each meaning (--texts FILE; a line is LABEL, tab, text)"
    if result.between is Between.MODELS and result.same:
        return ""
    return "none yet; one text, and others may differ elsewhere"


def _following(result: Comparison) -> Next | None:
    """What the head that is shown does with every token of the second text, or the first model."""
    side = result.b if result.between is Between.TEXTS else result.a
    head = side.head
    if result.between is not Between.TEXTS and head.kind is Kind.CROSS:
        return None
    opened = opening_head(head, head.layer, head.head)
    return Next(
        "what do other tokens look at in that head?", f"{opened}{looked_at(result.by, result.special)}"
    )


def _remarks(side: Side) -> Iterator[str]:
    """Why there is no row; masked keys, what special tokens hold that are not shown, the share of a sink."""
    if nothing := _nothing_words(side):
        yield nothing
        return
    if masked := int((~side.allowed).sum()):
        yield f"{counted(masked, 'key')} masked"
    if side.special_weight is not None:
        yield f"special tokens, left out, hold {weight(side.special_weight)}"
    if side.head.sink is not None:
        row = side.weights[side.allowed] if side.view is None else side.whole_row
        yield f"the sink takes {weight(float(1 - row.sum()))}"


def heads(result: Comparison) -> str:
    """The heads that are shown in full: `L3 H11`, or `L1 H11 and L3 H11`."""
    return " and ".join(dict.fromkeys(side.head.name for side in result.sides))


def models(result: Comparison) -> str:
    """The name of the model, or of both."""
    return " and ".join(dict.fromkeys(model_words(side.head.provenance) for side in result.sides))


def side_words(result: Comparison, side: Side) -> str:
    """What makes this side differ from the other, where the text does not say it: layer or model."""
    if result.between is Between.LAYERS:
        return side.head.name
    return model_words(side.head.provenance) if result.between is Between.MODELS else ""


def _placed(side: Side) -> str:
    """`5 door`; of several tokens `4-5 the door`, of a word of several pieces where it begins."""
    several = side.view is not None and spans(side.view)
    return f"{listed(side.pieces) if several else side.position} {settled(side.word)}"


def sentence(side: Side) -> str:
    """The text around the word, which is marked in it; where there is none, what else was read."""
    tokens, token = side.query_tokens, side.query_tokens.items[side.row]
    if not tokens.texts:
        return ", ".join(side.head.notes)
    if token.span is None or token.part >= len(tokens.texts) or not token.text.strip():
        return f"“{tokens.sentence}”"
    start, end = token.span
    text = tokens.texts[token.part]
    start += len(text[start:end]) - len(text[start:end].lstrip())
    word = text[start:end].rstrip()
    before, after = text[:start], text[start + len(word) :]
    before = before if len(before) <= _AROUND else f"… {before[-_AROUND:]}"
    after = after if len(after) <= _AROUND else f"{after[:_AROUND]} …"
    first, last = tokens.texts[: token.part], tokens.texts[token.part + 1 :]
    parts = (*first, marked_word(before, word, after), *last)
    return " | ".join(f"“{part}”" for part in parts)


def view_notes(result: Comparison) -> Iterator[str]:
    """How the weights and vectors are looked at, where that is not as they are."""
    if result.a.view is None:
        return
    yield from _spans(result)
    if result.by.joins:
        yield joined_words(result.by)
        if result.similarities:
            yield "vectors of a word: the means over its pieces"
    if result.special is Special.RENORMALISE:
        yield WITHOUT_SPECIAL + (", vectors are as they are" if result.similarities else "")
    elif result.special is Special.HIDE:
        held = ", but count where rows are held against each other" if result.divergence is not None else ""
        yield f"special tokens are left out of the keys that are shown{held}"
    yield "certificates are those of the weights by tokens"


def _spans(result: Comparison) -> Iterator[str]:
    if not any(spans(side.view) for side in result.sides if side.view is not None):
        return
    yield SPANS
    if result.similarities:
        yield "vectors of several tokens: their means"


def _notes(result: Comparison) -> Iterator[str]:
    """Why that head is shown, and what must be known to read the numbers, one sentence each."""
    if result.chosen:
        over = f" (passed over: {counted(result.passed_over, 'head')} with most weight on special tokens)"
        what = "outputs" if result.similarities else "rows"
        over = over if result.passed_over else ""
        if not result.begins:
            yield f"shown is {heads(result)}, whose {what} differ most{over}"
    elif len(result.layers) > 1:
        yield f"shown is {heads(result)}"
    yield from view_notes(result)
    yield from _of_rows(result)


def _legend(result: Comparison) -> Iterator[str]:
    """What the vectors are that are held against each other, and what positions have to do with them."""
    yield from _of_vectors(result)
    yield from _of_positions(result)


def _of_vectors(result: Comparison) -> Iterator[str]:
    if result.similarities:
        yield "output: of the head, before the output projection"
        if result.similarity("value") is None:
            yield "key and value: none, in cross-attention the word is a query only"
        if result.between is Between.MODELS:
            yield "cosines mean something only where one model was trained from the other"
    elif result.between is Between.LAYERS:
        yield (
            "no cosines: the vectors of two layers do not live in one space, and heads of one number have "
            "only that in common"
        )
    else:
        yield "no cosines: the vectors of these two models do not live in one space"


def _of_positions(result: Comparison) -> Iterator[str]:
    a, b = result.a.position, result.b.position
    if result.similarity("unrotated key") is not None:
        apart, alike = f"here {a} and {b}: that alone changes these two", f"here {a} in both"
        effect = apart if a != b else f"{alike}, which changes nothing"
        yield f"query and key carry their rotary position, {effect}; the unrotated key does not"
    elif result.similarities and a != b:
        yield (
            f"the word stands at {a} and at {b}: where a model adds positions, they are in its vectors too"
        )
    from_embedding = result.between is Between.TEXTS and result.a.head.kind is not Kind.CROSS
    if from_embedding and (0, 0) in result.layers:
        yield "query, key and value of L0 come from the word and its position alone, no context yet"


def _of_rows(result: Comparison) -> Iterator[str]:
    if any(side.head.kind is Kind.CROSS for side in result.sides):
        yield CROSS_ROWS
    if result.between is Between.MODELS and result.divergence is None:
        units = result.by.several
        yield f"the models read the text as different {units}: their rows are not held against each other"
    sinking = any(side.head.sink is not None for side in result.sides)
    if result.divergence is not None and sinking and result.special is not Special.RENORMALISE:
        yield "the share of the sink counts as one more key"


def _nothing_words(side: Side) -> str:
    """Why there is nothing to show of a row; empty where there is."""
    if not side.allowed.any() and side.special_weight is None:
        return "no valid key"
    left = np.nan_to_num(side.weights[side.allowed]).any()
    return "" if side.view is None or left else "nothing left without special tokens"
