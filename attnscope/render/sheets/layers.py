"""What each layer would answer if it were the last: a curve and a table for every place (the logit lens)."""

import math
from collections.abc import Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import chance, counted, likely, percent, significant
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Curve
from attnscope.render.sheet.said import in_sentence, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Line, Table
from attnscope.render.sheets.prediction import heads_needed
from attnscope.results import Guess, LayerAnswer, LayeredPlace, LayeredPrediction

_LONGEST_NAME = 24  # cells of a token
_MOST_TOLD = 4  # places in the answer
_FULL = 0.4  # of all probability: from there on the axis goes up to it
_SHARE = Scale(0.0, 1.0)
_COLUMNS = "position layer id token probability rank apart control control_high best_id best best_probability"


def sheet(result: LayeredPrediction, focus: Focus = WHOLE) -> Sheet:
    curves = tuple(_curve(result, each) for each in result.places)
    return Sheet(
        title="what each layer would answer",
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=curves,
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        texts=tuple(text(result.tokens)),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=(
            "a layer's answer: its hidden state put in the place of the last layer's, then the model's own "
            "norm and head (logit lens, nostalgebraist 2020)",
        ),
        untouched=f"the last layer's state alone gives the model's own answer {_near(result)}",
        main=curves[0] if len(curves) == 1 else None,
        next=_next(result),
        record=tuple(("answer", _said(each.answer)) for each in result.places),
    )


def _next(result: LayeredPrediction) -> Next | None:
    (first, *others) = result.places
    return None if others else heads_needed(result.tokens, result.task, result.provenance, first.answer)


def _near(result: LayeredPrediction) -> str:
    return f"within {significant(result.read_back)}" if result.read_back else "exactly"


def layer_name(layer: int) -> str:
    return "embeddings" if layer < 0 else f"L{layer}"


def _answer(result: LayeredPrediction) -> str:
    if len(result.places) == 1:
        return _one(result, result.places[0])
    told = [
        f"{_lower(_place(result, each))} {_said(each.answer)} from {_since(each)}"
        for each in result.places[:_MOST_TOLD]
    ]
    more = len(result.places) - _MOST_TOLD
    rest = f" and {counted(more, 'more place')}" if more > 0 else ""
    return f"The model would answer {'; '.join(told)}{rest}."


def _since(place: LayeredPlace) -> str:
    if place.leads_from == place.layers[-1].layer:
        return "the last layer on"
    return f"{_article(place.leads_from)} on"


def _article(layer: int) -> str:
    return f"{'the ' if layer < 0 else ''}{layer_name(layer)}"


def _one(result: LayeredPrediction, place: LayeredPlace) -> str:
    i = next(i for i, each in enumerate(place.layers) if each.layer == place.leads_from)
    here, where = place.layers[i], _place(result, place)
    answer = _said(place.answer)
    if i == len(place.layers) - 1:
        once = all(each.rank > 1 for each in place.layers[:i])  # no earlier layer has it first and loses it
        puts, again = ("only the last layer puts", "") if once else ("the last layer puts", " again")
        first = f"{where}, {puts} {answer} first{again} ({likely(here.probability)})"
    else:
        first = (
            f"{where}, the model would answer {answer} from {_article(here.layer)} on "
            f"({likely(here.probability)} there, {likely(place.answer.probability)} at the end)"
        )
    if i == 0:
        return f"{first}{_beside(here)}."
    before = place.layers[i - 1]
    told = (
        f"{_article(before.layer)} would still say {_said(before.best)} ({likely(before.best.probability)})"
    )
    return f"{first}; {told}{_beside(here)}."


def _beside(here: LayerAnswer) -> str:
    if math.isnan(here.control):
        return ""
    as_much = ", in some as much as here" if here.control_high >= here.probability else ""
    return (
        f". In texts with the words in other orders it gets {chance(here.control)} there on average{as_much}"
    )


def _lower(where: str) -> str:
    return f"{where[:1].lower()}{where[1:]}"


def _said(guess: Guess) -> str:
    return f"“{settled(fit(guess.name, _LONGEST_NAME))}”"


def _place(result: LayeredPrediction, place: LayeredPlace) -> str:
    if place.position is None:
        return "For the class"
    where = in_sentence(result.tokens, place.position)
    return f"{'After' if result.task == 'next' else 'At'} {where}"


def _curve(result: LayeredPrediction, place: LayeredPlace) -> Curve:
    layers, answer = place.layers, _said(place.answer)
    own = [each.probability for each in layers]
    held = [each.control for each in layers]
    most = max(own)
    columns = [
        Column("best", [each.best.name for each in layers], "would answer",
               told=[_said(each.best) for each in layers]),
        Column("best_probability", [each.best.probability for each in layers], "with", chance),
        Column("probability", own, answer, chance, "the probability of the model's own answer", _SHARE),
        Column("rank", [each.rank for each in layers], "rank", says="its place, 1 for the likeliest",
               told=[f"{each.rank:,}" for each in layers], spared=1),
        Column("apart", [each.apart for each in layers], "from the end", percent,
               "how much of the probability would have to move to make the model's own answer", spared=2),
    ]  # fmt: skip
    lines = [Line("line", "query", f"probability of {answer}", [100 * each for each in own])]
    if result.controls:
        columns.insert(
            4, Column("control", held, "other orders", chance, f"{answer} in the shuffled texts, on average")
        )
        lines.append(Line("dashed", "peers", "with the words in other orders", [100 * each for each in held]))
    return Curve(
        title=f"{_lower(_place(result, place))}, layer by layer",
        of="layer",
        names=tuple(layer_name(each.layer) for each in layers),
        table=Table(*columns),
        places=tuple(float(each.layer) for each in layers),
        named=True,
        measured="probability, %",
        lines=tuple(lines),
        axis=(0.0, 103.0 if most > _FULL else 120 * most),
        chosen=frozenset(i for i, each in enumerate(layers) if each.layer == place.leads_from),
    )


def _control(result: LayeredPrediction) -> str:
    if not result.controls:
        return ""
    return f"{counted(result.controls, 'text')} with the words in other orders: {result.how}"


def _notes(result: LayeredPrediction) -> Iterator[str]:
    yield from result.notes
    if not result.controls:
        yield result.how
    yield (
        "what answers was trained on the last layer alone: a late answer here does not show that the model "
        "decides late"
    )


def _facts(result: LayeredPrediction) -> Iterator[tuple[object, ...]]:
    for place in result.places:
        position = "" if place.position is None else place.position
        for each in place.layers:
            numbers = (each.probability, each.rank, each.apart, each.control, each.control_high)
            yield (
                position, each.layer, place.answer.id, place.answer.name, *map(exact, numbers),
                each.best.id, each.best.name, exact(each.best.probability),
            )  # fmt: skip
