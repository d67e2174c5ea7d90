"""Parts of layers taken away, layer by layer or token by token: the grid that papers draw."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attnscope.printable import printable, word
from attnscope.render.focus import Focus
from attnscope.render.kit.numbers import (
    alike,
    give_or_take,
    number,
    signed,
    signed_cell,
)
from attnscope.render.kit.words.command import asking, opening_head
from attnscope.render.sheet.blocks import Beside, Matrix, Names, Ranking
from attnscope.render.sheet.said import name, setting
from attnscope.render.sheet.scale import Scale, missing
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.render.sheets import ablation_labels as labels
from attnscope.render.sheets import ablation_measured as measured
from attnscope.render.sheets.ablation_place_words import (
    answer,
    closed,
    done_words,
    enough,
    largest,
    row_words,
    short,
    tokens_of,
    typical_of,
)
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Case, Method
from attnscope.results.claims.effect import PlaceEffect
from attnscope.results.claims.intervention import Part
from attnscope.spelling import spelled

MOST_SHOWN = 16  # places in a ranking


def of_places(result: Ablation, focus: Focus) -> Sheet:
    """The grid or the ranking of places."""
    blocks = tuple(_blocks(result, focus.verbose))
    best = largest(result)
    return Sheet(
        title=f"{done_words(result)} · answer {measured.answer_words(result)}",
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
            *labels.path_record(result),
        ),
        next=_next(result),
    )


def _control(result: Ablation) -> str:
    return f"{result.beside or 'none'}, each changed alone; {result.how}"


def _legend(result: Ablation) -> Iterator[str]:
    if result.total is not None and any(each.enough is not None for each in result.places):
        yield "needed: what of the gap closes with the other text's part put in here"
        yield "enough: what of the answer comes back with this text's part put in the other text"
    changes = [each.change for each in result.places]
    back = [-each.enough for each in result.places if each.enough is not None]
    if result.case is Case.CLOSES and (told := measured.beyond(result, [*changes, *back])):
        yield told
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
    if best.head is not None:
        query = best.positions[0] if len(best.positions) == 1 else None
        opened = opening_head(result, best.layer, best.head, query)
        return Next(f"what does {name(best.layer, best.head)} look at?", opened)
    return None


def _blocks(result: Ablation, whole: bool) -> Iterator[Ranking | Matrix | Beside]:
    if not result.of_several_tokens or result.part is Part.POSITION:
        yield _ranking(result, whole)
        return
    if result.case is Case.CLOSES:
        yield _direction(result, "needed", "share of the gap that closes", "change here", False)
        if any(each.enough is not None for each in result.places):
            of = "share that comes back in the other text"
            yield _direction(result, "enough", of, "change in the other text", True)
        return
    title = f"change ({measured.less(result)}), each {labels.done(result)} alone"
    yield _matrix(result, title, [each.change for each in result.places])


def _direction(result: Ablation, name: str, share: str, change: str, back: bool) -> Matrix:
    of = enough if back else closed
    shares = [of(result, each) for each in result.places]
    if all(measured.is_share(each) for each in shares if each is not None):
        return _matrix(result, f"{name}: {share}", shares)
    gap = signed(result.total.change) if result.total is not None else ""
    title = f"{name}: {change} ({result.unit}; the gap is {gap}, and not all are shares of it)"
    return _matrix(result, title, [each.enough if back else each.change for each in result.places])


def _matrix(result: Ablation, title: str, values: Sequence[float | None]) -> Matrix:
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


def _ranking(result: Ablation, whole: bool) -> Ranking:
    shown = result.places
    if not whole and len(shown) > MOST_SHOWN:
        shown = tuple(sorted(shown, key=lambda each: -abs(each.change))[:MOST_SHOWN])
    table, hidden = _table(result, shown), len(result.places) - len(shown)
    values, others = table["change"].values, table["typical"].values
    rounding = result.floor.rounding
    marks = (
        Mark("band", "floor", typical_of(result), others, [each and -each for each in others]),
        *both_ways(values, "the answer loses", "the answer gains"),
        Mark("line", "noise", f"rounding: {give_or_take(rounding, None)}", [-rounding, rounding]),
    )
    return Ranking(
        title="ordered by the size of the change" if hidden else "",
        of=labels.done(result),
        names=tuple(short(result, each) for each in shown),
        table=table,
        measured=measured.changes(result),
        marks=tuple(each for each in marks if not all(map(missing, each.at))),
        written="change",
        hidden=hidden,
        unshown=f"{hidden} more (-v)" if hidden else "",
    )


def _table(result: Ablation, places: Sequence[PlaceEffect]) -> Table:
    tokens, digits = tokens_of(result), measured.decimals(result)
    change, plain = partial(signed_cell, decimals=digits), partial(number, decimals=digits)
    shares, back = ([of(result, each) for each in places] for of in (closed, enough))
    parts = [
        measured.told_share(result, part, each.change) for part, each in zip(shares, places, strict=True)
    ]
    parts_back = [
        measured.told_share(result, part, each.enough or 0.0) for part, each in zip(back, places, strict=True)
    ]
    # fmt: off
    return Table(
        Column("layer", [None if each.layer < 0 else each.layer for each in places]),
        Column("head", [each.head for each in places]),
        Column("position", [",".join(map(str, each.positions)) for each in places]),
        Column("token", [printable(spelled(tokens, each.positions)) for each in places]),
        Column("before", [each.before for each in places]),
        Column("after", [each.after for each in places], measured.heading(result),
               told=[measured.pair(result, each) for each in places],
               says=f"{measured.subject(result)}, before and after"),
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
        Column("whole", [each.whole for each in places], "by all ways", change,
               "change where everything reads it", spared=1),
        Column("share", shares, "needed", told=parts, says="share of the gap that closes here"),
        Column("share_enough", back, "enough", told=parts_back,
               says="share of the gap that comes back in the other text"),
        Column("instead", [each.instead for each in places], "then answers",
               says="what the model answers then, where that is another answer", spared=2),
    )
    # fmt: on
