"""Parts of layers taken away, layer by layer or token by token: the grid that papers draw."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.printable import printable
from attnscope.render.kit.numbers import (
    alike,
    give_or_take,
    number,
    percent,
    signed_cell,
)
from attnscope.render.kit.words.command import asking
from attnscope.render.kit.words.shell import word
from attnscope.render.sheet.blocks import Beside, Matrix, Names, Ranking
from attnscope.render.sheet.said import setting
from attnscope.render.sheet.scale import Scale, missing
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets import ablation_labels as labels
from attnscope.render.sheets.ablation_place_words import (
    answer,
    done,
    done_words,
    enough,
    largest,
    row_words,
    several_tokens,
    share,
    short,
    tokens_of,
    typical_of,
)
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case, Method, PlaceEffect
from attnscope.results.claims.intervention import Part
from attnscope.spelling import spelled


def of_places(result: Ablation) -> Sheet:
    """The grid or the ranking of places."""
    blocks = tuple(_blocks(result))
    best = largest(result)
    return Sheet(
        title=f"{done_words(result)} · answer {labels.answer_words(result)}",
        setting=setting(result),
        origins=(result.provenance,),
        answer=answer(result),
        blocks=blocks,
        table=lambda: _table(result, result.places),
        texts=tuple(labels.texts(result)),
        control=_control(result),
        notes=result.notes,
        legend=tuple(_legend(result)),
        details=(labels.read_back(result),),
        departs=(f"seed {result.floor.seed}",) if result.floor.seed else (),
        proof=((result.verdict, labels.proof_words(result)),),
        main=next((each for each in blocks if not isinstance(each, Beside)), None),
        whole="both directions stand side by side",
        summary=(f"most {short(result, best)}",),
        record=(
            ("kind", result.kind.value),
            ("tower", result.tower),
            ("method", result.method.value),
            ("part", result.part.value),
        ),
        next=_next(result),
    )


def _control(result: Ablation) -> str:
    """What places are held against, and what stands in their place."""
    return f"{result.beside or 'none'}, each changed alone; {result.how}"


def _legend(result: Ablation) -> Iterator[str]:
    if result.total is not None and any(each.enough is not None for each in result.places):
        yield "needed: what of the gap closes with the other text's part put in here"
        yield "enough: what of the answer comes back with this text's part put in the other text"
    if result.part is Part.RESIDUAL and result.answer.position is not None:
        yield (
            "what layers hand on at the answer's own token is all that it is made of there, most of all "
            "behind the last layer: it moves the answer in every text"
        )
    if result.part in (Part.MLP, Part.ATTENTION):
        what = "its neurons" if result.part is Part.MLP else "its heads"
        yield f"{result.part.value}: what {what} answer, before the last matrix, whose offset stays"
    yield from labels.legend(result)


def _next(result: Ablation) -> Next | None:
    """By token where it was by layer; else which heads of the layer."""
    best = largest(result)
    if best.layer < 0 or result.link is not None:
        return None
    asked = labels.asked_again(result)
    if result.method is Method.MEAN:
        asked = (*asked, "--with", "mean")
    if result.other is not None and result.other.texts:
        asked = (*asked, "--patch-from", word(result.other.texts[0]))
    if not best.positions:
        ran = asking(result, "ablate", "--part", result.part.value, "--at", "pos:each", *asked)
        return Next("at which token?", ran)
    if result.part in (Part.ATTENTION, Part.RESIDUAL):
        return Next(
            f"which heads of layer {best.layer}?",
            asking(result, "ablate", "--layer", str(best.layer), *asked),
        )
    return None


def _blocks(result: Ablation) -> Iterator[Ranking | Matrix | Beside]:
    if not several_tokens(result) or result.part is Part.POSITION:
        yield _ranking(result)
        return
    if result.case is Case.CLOSES:
        needed = _matrix(
            result, "needed: share of the gap that closes", [share(result, each) for each in result.places]
        )
        back = [enough(result, each) for each in result.places]
        if all(each is None for each in back):
            yield needed
        else:
            yield needed
            yield _matrix(result, "enough: share that comes back in the other text", back)
        return
    title = f"change ({labels.less(result)}), each {done(result)} alone"
    yield _matrix(result, title, [each.change for each in result.places])


def _matrix(result: Ablation, title: str, values: Sequence[float | None]) -> Matrix:
    """Layers down, tokens across."""
    tokens = tokens_of(result)
    rows = list(dict.fromkeys(row_words(result, each) for each in result.places))
    heads = any(each.head is not None for each in result.places)
    layers = tuple(dict.fromkeys(each.layer for each in result.places))
    cells = np.full((len(rows), len(tokens)), np.nan)
    for place, each in zip(result.places, values, strict=True):
        cells[rows.index(row_words(result, place)), list(place.positions)] = np.nan if each is None else each
    return Matrix(
        title=title,
        words=("head" if heads else "layer", "key" if result.link is not None else "token"),
        rows=Names(tuple(rows), tuple(range(len(rows)))) if heads else Names(("",) * len(rows), layers),
        columns=tokens,
        values=cells,
        scale=Scale.around(cells[np.isfinite(cells)] if np.isfinite(cells).any() else [1.0]),
        form=alike(cells, 2, signed_cell),
        unanswered="not changed",
        blank="not changed",
    )


def _ranking(result: Ablation) -> Ranking:
    """A bar for each, to the left where the answer loses, in the order of layers or of the text."""
    table = _table(result, result.places)
    values, others = table["change"].values, table["typical"].values
    rounding = result.floor.rounding
    marks = (
        Mark("band", "floor", typical_of(result), others, [each and -each for each in others]),
        *both_ways(values, "the answer loses", "the answer gains"),
        Mark("line", "noise", f"rounding: {give_or_take(rounding, None)}", [-rounding, rounding]),
    )
    return Ranking(
        title="",
        of=done(result),
        names=tuple(short(result, each) for each in result.places),
        table=table,
        measured=labels.changes(result),
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="change",
    )


def _table(result: Ablation, places: Sequence[PlaceEffect]) -> Table:
    tokens, digits = tokens_of(result), labels.decimals(result)
    change, plain = partial(signed_cell, decimals=digits), partial(number, decimals=digits)
    shares, back = ([of(result, each) for each in places] for of in (share, enough))
    # fmt: off
    return Table(
        Column("layer", [None if each.layer < 0 else each.layer for each in places]),
        Column("head", [each.head for each in places]),
        Column("position", [",".join(map(str, each.positions)) for each in places]),
        Column("token", [printable(spelled(tokens, each.positions)) for each in places]),
        Column("before", [each.before for each in places]),
        Column("after", [each.after for each in places], labels.heading(result),
               told=[labels.pair(result, each) for each in places],
               says=f"{labels.subject(result)}, before and after"),
        Column("change", [each.change for each in places], f"change ({result.unit})", change,
               scale=Scale.around([each.change for each in places])),
        Column("kl", [each.kl for each in places], "", plain),
        Column("typical", [each.typical for each in places], "typical of others", plain,
               f"median size of the change that {result.beside} make", spared=1),
        Column("below", [each.below if each.controls else None for each in places], "among these",
               told=[labels.rank(each, False) if each.controls else "" for each in places],
               says="which it is of these by the size of its change: a rank, not a test"),
        Column("controls", [each.controls for each in places]),
        Column("enough", [each.enough for each in places]),
        Column("share", shares, "needed", percent, "share of the gap that closes here"),
        Column("share_enough", back, "enough", percent, "share of the gap that comes back in the other text"),
        Column("instead", [each.instead for each in places], "then answers",
               says="what the model answers then, where that is another answer", spared=2),
    )
    # fmt: on
