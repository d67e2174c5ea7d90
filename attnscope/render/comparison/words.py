"""What is said about a comparison, the same in a terminal and in a picture."""

import numpy as np

from attnscope.render.kit.numbers import counted, signed_texts
from attnscope.render.kit.words.header import CROSS_ROWS, attention_words, model_words
from attnscope.render.kit.words.weights import JOINED, WITHOUT_SPECIAL
from attnscope.results import Between, Comparison, Kind, Side, Special, Verdict
from attnscope.tokens import printable

OPEN, CLOSE = "«", "»"


def subject(result: Comparison) -> str:
    """The word and what differs: `“bank” in two texts`."""
    a, b = (printable(side.word) for side in result.sides)
    word = f"“{a}”" if a == b else f"“{a}” and “{b}”"
    if result.between is Between.LAYERS:
        return f"{word} in layers {result.a.head.layer} and {result.b.head.layer}"
    return f"{word} {'in two texts' if result.between is Between.TEXTS else 'under two models'}"


def looks(result: Comparison) -> str:
    """How both sides are looked at, for the header: `by words · special tokens hidden`."""
    told = ["by words"] if result.words else []
    told += ["special tokens hidden"] if result.special is Special.HIDE else []
    told += ["without special tokens"] if result.special is Special.RENORMALISE else []
    return " · ".join(told)


def heads(result: Comparison) -> str:
    """The heads that are shown in full: `L3 H11`, or `L1 H11 and L3 H11`."""
    return " and ".join(dict.fromkeys(side.head.name for side in result.sides))


def kinds(result: Comparison) -> str:
    """Which attention is looked at."""
    return " and ".join(dict.fromkeys(attention_words(side.head.kind) for side in result.sides))


def models(result: Comparison) -> str:
    """The name of the model, or of both."""
    return " and ".join(dict.fromkeys(model_words(side.head.provenance) for side in result.sides))


def side_words(result: Comparison, side: Side) -> str:
    """What makes this side differ from the other, where the text does not say it: layer or model."""
    if result.between is Between.LAYERS:
        return side.head.name
    return model_words(side.head.provenance) if result.between is Between.MODELS else ""


def sentence(side: Side) -> str:
    """The text that the word stands in, with the word marked; where there is none, what else was read."""
    tokens, token = side.query_tokens, side.query_tokens.items[side.row]
    if not tokens.texts:
        return ", ".join(printable(note) for note in side.head.notes)
    if token.span is None or token.part >= len(tokens.texts) or not token.text.strip():
        return f"“{printable(tokens.sentence)}”"
    start, end = token.span
    text = tokens.texts[token.part]
    start += len(text[start:end]) - len(text[start:end].lstrip())
    marked = f"{text[:start]}{OPEN}{text[start:end].rstrip()}{CLOSE}{text[end:]}"
    parts = (*tokens.texts[: token.part], marked, *tokens.texts[token.part + 1 :])
    return " | ".join(f"“{printable(part)}”" for part in parts)


def attended_words(side: Side) -> str:
    """In cross-attention the text whose tokens are the keys; else nothing."""
    if side.head.kind is not Kind.CROSS:
        return ""
    return f"attends to “{printable(side.head.key_tokens.sentence)}”"


def shown_words(result: Comparison) -> str:
    """Which heads are shown in full and why, and how far apart both sides are there."""
    i, j = result.shown
    output, rows = result.similarity("output"), result.divergence
    told = []
    if output is not None:
        told.append(f"cosine of the outputs {cosine_text(output.heads[i, j])}")
    if rows is not None:
        nats, moved = (float(each[i, j]) for each in (rows.jensen_shannon, rows.total_variation))
        told.append(f"rows apart by {cosine_text(nats)} nats (Jensen-Shannon, 0 to 0.693)")
        told.append(f"{cosine_text(moved)} of the weight moved (total variation)")
    what = "outputs" if output else "rows"
    over = f"; {counted(result.passed_over, 'head')} passed over that look at special tokens"
    why = f"of the heads asked for, the one whose {what} differ most{over if result.passed_over else ''}"
    why = f" ({why})" if result.chosen else ""
    return f"{heads(result)}{why}: {', '.join(told)}" if told else heads(result)


def curves(result: Comparison) -> str:
    """What is drawn layer by layer."""
    if len(result.heads) == 1:
        return f"by layer: H{result.heads[0]}; circle: the head whose rows are shown"
    dots = "the output of each head" if result.similarities else "each head"
    told = f"dots: {dots}; circle: the head whose rows are shown"
    return f"lines: {together(result)}; {told}" if result.similarities else told


def together(result: Comparison) -> str:
    """Which heads of a layer the cosines take as one vector."""
    count = len(result.heads)
    if count == 1:
        return f"H{result.heads[0]}"
    whole = count == result.a.head.heads
    return "all heads of a layer together" if whole else f"{count} chosen heads together"


def table_remarks(result: Comparison) -> list[str]:
    """What the last columns of the table by layer hold."""
    several = len(result.heads) > 1
    told = ["least alike: the head whose outputs have the smallest cosine"]
    if not (several and result.similarities):
        told = []
    if result.divergence is not None and len(result.layers) > 1:
        rows = (
            "furthest apart: the head whose rows differ most"
            if several
            else "rows apart: how far they differ"
        )
        told.append(f"{rows}, by Jensen-Shannon divergence in nats, 0 to 0.693")
    return told


def remarks(result: Comparison) -> list[str]:
    """What must be known to read the numbers, one sentence each."""
    return [*view_remarks(result), *_of_vectors(result), *_of_positions(result), *_of_rows(result)]


def view_remarks(result: Comparison) -> list[str]:
    """How the weights and vectors are looked at, where that is not as they are."""
    if result.a.view is None:
        return []
    told = [JOINED] if result.words else []
    told += ["vectors of a word: the means over its pieces"] if result.words and result.similarities else []
    if result.special is Special.RENORMALISE:
        told.append(WITHOUT_SPECIAL + (", vectors are as they are" if result.similarities else ""))
    elif result.special is Special.HIDE:
        held = ", but count where rows are held against each other" if result.divergence is not None else ""
        told.append(f"special tokens are left out of the keys that are shown{held}")
    return [*told, "certificates are those of the weights by tokens"]


def nothing_words(side: Side) -> str:
    """Why there is nothing to show of a row; empty where there is."""
    if not side.allowed.any() and side.special_weight is None:
        return "no valid key"
    left = np.nan_to_num(side.weights[side.allowed]).any()
    return "" if side.view is None or left else "nothing left without special tokens"


def _of_vectors(result: Comparison) -> list[str]:
    if result.similarities:
        told = ["output: of the head, before the output projection"]
        if result.similarity("value") is None:
            told.append("key and value: none, in cross-attention the word is a query only")
        if result.between is Between.MODELS:
            told.append("cosines mean something only where one model was trained from the other")
        return told
    if result.between is Between.LAYERS:
        apart = "no cosines: the vectors of two layers do not live in one space"
        return [f"{apart}, and heads of one number have only that in common"]
    return ["no cosines: the vectors of these two models do not live in one space"]


def _of_positions(result: Comparison) -> list[str]:
    """What the place of the word has to do with its vectors."""
    a, b = result.a.position, result.b.position
    told = []
    if result.similarity("unrotated key") is not None:
        effect = (
            f"here {a} and {b}: that alone changes these two"
            if a != b
            else f"here {a} in both, which changes nothing"
        )
        told.append(f"query and key carry their rotary position, {effect}; the unrotated key does not")
    elif result.similarities and a != b:
        told.append(
            f"the word stands at {a} and at {b}: where a model adds positions, they are in its vectors too"
        )
    from_embedding = result.between is Between.TEXTS and result.a.head.kind is not Kind.CROSS
    if from_embedding and (0, 0) in result.layers:
        told.append("query, key and value of L0 come from the word and its position alone, no context yet")
    return told


def _of_rows(result: Comparison) -> list[str]:
    told = [CROSS_ROWS] if any(side.head.kind is Kind.CROSS for side in result.sides) else []
    if result.between is Between.MODELS and result.divergence is None:
        units = "words" if result.words else "tokens"
        told.append(
            f"the models read the text as different {units}: their rows are not held against each other"
        )
    if result.divergence is not None and _counts_a_sink(result):
        told.append("the share of the sink counts as one more key")
    return told


def _counts_a_sink(result: Comparison) -> bool:
    """Whether rows that are held against each other have the share of a sink in them."""
    sinking = any(side.head.sink is not None for side in result.sides)
    return sinking and result.special is not Special.RENORMALISE


def verdict_counts(result: Comparison) -> list[tuple[Verdict, str]]:
    """How many heads of both sides have each verdict, best first."""
    every = [certificate.verdict for side in result.sides for certificate in side.every_certificate]
    return [
        (
            verdict,
            f"{verdict.value}: {every.count(verdict)} of {counted(len(every), 'head')}, both sides counted",
        )
        for verdict in Verdict
        if verdict in every
    ]


def cosine_text(value: float) -> str:
    """Three decimals, `-` for what is no number."""
    return "-" if np.isnan(value) else str(signed_texts(np.array([value, 1.0]), 3)[0])
