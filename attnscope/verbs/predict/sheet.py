"""Sheet of `predict --layers`: the logit lens by layer, beside texts in other word orders."""

import math
from collections.abc import Iterator

from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.numbers import chance, exact, percent
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Curve
from attnscope.render.sheet.said import in_sentence, text
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Line, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.sheets.prediction import heads_needed
from attnscope.render.words import Said
from attnscope.results import Guess
from attnscope.verbs.predict.result import LayeredPlace, LayeredPrediction

_MOST_LAYERED = 2  # most places in the answer sentence
_FULL = 0.4  # probability from which the axis goes up to 1
_LAYER_COLUMNS = (
    "position layer id token probability rank apart control control_high best_id best best_probability"
)
_LONGEST_NAME = 24  # most terminal cells of a token


def sheet(result: LayeredPrediction, focus: Focus = WHOLE) -> Sheet:
    say, first = layers_said(result), result.places[0]
    curves = tuple(_curve(result, each, say) for each in result.places)
    needed = heads_needed(result, first.answer)
    return saying(
        say,
        setting=model_words(result.provenance),
        blocks=curves,
        table=lambda: Table.of(_LAYER_COLUMNS, _layer_records(result)),
        texts=tuple(text(result.tokens)),
        notes=(*result.notes, *say.lines("notes")),
        untouched=say("untouched"),
        main=curves[0] if len(curves) == 1 else None,
        next=needed if len(curves) == 1 else None,
        record=tuple(("answer", _quoted(each.answer)) for each in result.places),
    )


def layers_said(result: LayeredPrediction) -> Said:
    """Sentences of `predict --layers` about this result, and the facts they use."""
    first, told = result.places[0], result.places[:_MOST_LAYERED]
    i = next(i for i, each in enumerate(first.layers) if each.layer == first.leads_from)
    here, before = first.layers[i], first.layers[i - 1] if i else None
    facts = {
        "after": result.task == "next",
        "place": _layer_place(result, first),
        "answer": _quoted(first.answer),
        "chance": first.answer.probability,
        "here": here,
        "before": before,
        "before_says": before and _quoted(before.best),
        "lost": any(each.rank == 1 for each in first.layers[:i]),
        "held": not math.isnan(here.control),
        "places": [
            (_layer_place(result, each), _quoted(each.answer), each.leads_from, each.leads_late)
            for each in told
        ],
        "more": len(result.places) - len(told),
    }
    return Said("layers", result, facts)


def _quoted(guess: Guess) -> str:
    return f"“{settled(fit(guess.name, _LONGEST_NAME))}”"


def _layer_place(result: LayeredPrediction, place: LayeredPlace) -> str:
    return "" if place.position is None else in_sentence(result.tokens, place.position)


def _curve(result: LayeredPrediction, place: LayeredPlace, say: Said) -> Curve:
    layers, answer = place.layers, _quoted(place.answer)
    own, held = [each.probability for each in layers], [each.control for each in layers]
    most = max(own)
    # fmt: off
    columns = [
        Column("best", [each.best.name for each in layers], say("would_answer"),
               told=[_quoted(each.best) for each in layers]),
        Column("best_probability", [each.best.probability for each in layers], "with", chance),
        Column("probability", own, answer, chance, say("says_probability"), Scale(0.0, 1.0)),
        Column("rank", [each.rank for each in layers], "rank", says=say("says_rank"),
               told=[f"{each.rank:,}" for each in layers], spared=1),
        Column("control", held, say("other_orders"), chance, say("says_control", answer)),
        Column("apart", [each.apart for each in layers], say("from_the_end"), percent, say("says_apart"),
               spared=2),
    ]
    # fmt: on
    lines = [
        Line("line", "query", say("line", answer), [100 * each for each in own]),
        Line("dashed", "peers", say("other_line"), [100 * each for each in held]),
    ]
    return Curve(
        title=say("curve_title", _layer_place(result, place)),
        of="layer",
        names=tuple("embeddings" if each.layer < 0 else f"L{each.layer}" for each in layers),
        table=Table(*(each for each in columns if result.controls or each.name != "control")),
        places=tuple(float(each.layer) for each in layers),
        named=True,
        measured="probability, %",
        lines=tuple(lines if result.controls else lines[:1]),
        axis=(0.0, 103.0 if most > _FULL else 120 * most),
        chosen=frozenset(i for i, each in enumerate(layers) if each.layer == place.leads_from),
    )


def _layer_records(result: LayeredPrediction) -> Iterator[tuple[object, ...]]:
    for place in result.places:
        position = "" if place.position is None else place.position
        for each in place.layers:
            numbers = (each.probability, each.rank, each.apart, each.control, each.control_high)
            yield (
                position, each.layer, place.answer.id, place.answer.name, *map(exact, numbers),
                each.best.id, each.best.name, exact(each.best.probability),
            )  # fmt: skip
