"""The product of a query and a key, dimension by dimension, and the pairs that a rotary position turns."""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.render.kit.cells import settled
from attnscope.render.kit.numbers import alike_texts, counted, significant
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import certified, features, in_sentence
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, as_written, both_ways
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Dimensions

_MOST_PAIRS = 12


def sheet(result: Dimensions, focus: Focus = WHOLE) -> Sheet:
    """As many of the dimensions as are asked for; a file has all."""
    head, say = result.head, said(result)
    return saying(
        say,
        head,
        blocks=(_products(result, say, focus.rows), *_turned(result, say)),
        table=lambda: _table(result),
        legend=(*say.lines("legend"), *features(head)),
        proof=certified(head.certificate, focus.verbose),
        summary=(counted(len(result.products), "dimension"),),
        record=tuple(_record(result)),
    )


def said(result: Dimensions) -> Said:
    """The words of `--dims` about this result."""
    head, place = result.head, (result.query, result.key)
    leads = -np.sort(-(result.products - result.beside) * np.sign(result.lead or 1.0))
    facts = {
        "head": head.name,
        "query": in_sentence(head.query_tokens, result.query),
        "key": in_sentence(head.key_tokens, result.key),
        "from": settled(head.query_tokens.named(result.query)),
        "to": settled(head.key_tokens.named(result.key)),
        "own": float(head.weights[place]),
        "score": float(head.scores[place]),
        "scaled": float(head.scaled[place]),
        "dims": len(result.products),
        "needed": int((leads.cumsum() < abs(result.lead) / 2).sum()) + 1,
        "others": len(result.others),
        "others_score": float(result.beside.sum()),
    }
    return Said("dimensions", result, facts)


def _products(result: Dimensions, say: Said, rows: int | None) -> Ranking:
    order = result.order[:rows].tolist()
    products, sums = [float(result.products[i]) for i in order], result.cumulated[: len(order)].tolist()
    beside = [float(result.beside[i]) for i in order]
    so_far = alike_texts(result.cumulated, 2)[: len(order)].tolist()
    left = len(result.products) - len(order)
    rest = float(result.products.sum()) - (sums[-1] if sums else 0.0)
    return Ranking(
        title=say("products"),
        of="dim",
        names=tuple(map(str, order)),
        table=Table(
            _column("q", result.query_vector, order, scale=Scale.around(result.query_vector)),
            _column("k", result.key_vector, order, scale=Scale.around(result.key_vector)),
            _column("q x k", result.products, order, scale=Scale.around(result.products)),
            _column("others", result.beside, order, say("says_others")),
            Column("so far", so_far, "so far", as_written),
        ),
        says=say("more", left, rest) if left else "",
        measured="q x k",
        marks=(
            *both_ways(products),
            Mark("tick", "control", say("others_mark"), beside),
            Mark("dot", "peers", say("sum_mark"), sums),
            Mark("line", "limit", say("score_mark"), [float(result.head.scores[result.query, result.key])]),
        ),
        cells=("q", "k"),
    )


def _column(
    heading: str, values: np.ndarray, order: Sequence[int], says: str = "", scale: Scale | None = None
) -> Column:
    texts = alike_texts(values, 2)
    shown = [float(values[i]) for i in order]
    return Column(heading, shown, heading, says=says, scale=scale, told=[str(texts[i]) for i in order])


def _turned(result: Dimensions, say: Said) -> Iterator[Ranking]:
    if result.rotation is None:
        return
    found, sums = result.rotation, result.by_pair
    order = np.argsort(-np.abs(sums), kind="stable")[:_MOST_PAIRS].tolist()
    waves = [float(found.wavelength[i]) for i in order]
    turns = [significant(wave) if np.isfinite(wave) else say("never") for wave in waves]
    yield Ranking(
        title=say("turned"),
        of="pair",
        names=tuple(f"{found.first[i]}+{found.second[i]}" for i in order),
        table=Table(
            _column("adds", sums, order, scale=Scale.around(sums)),
            Column("turn", waves, "turn", says=say("says_turn"), told=turns),
        ),
        measured=say("pair_adds"),
        marks=both_ways([float(sums[i]) for i in order]),
        hidden=len(sums) - len(order),
        cells=("turn",),
    )


def _record(result: Dimensions) -> Iterator[tuple[str, object]]:
    head = result.head
    yield from (("name", head.name), ("kind", head.kind.value), ("tower", head.tower))
    yield from (("layer", head.layer), ("head", head.head), ("module", head.module))
    yield "query", head.query_tokens.named(result.query)
    yield "key", head.key_tokens.named(result.key)
    yield "score", float(head.scores[result.query, result.key])


def _table(result: Dimensions) -> Table:
    order = result.order.tolist()
    partner: dict[int, tuple[int, float]] = {}
    if (found := result.rotation) is not None:
        for one, other, wave in zip(found.first, found.second, found.wavelength, strict=True):
            partner |= {int(one): (int(other), float(wave)), int(other): (int(one), float(wave))}
    vectors = {
        "q": result.query_vector,
        "k": result.key_vector,
        "product": result.products,
        "others": result.beside,
    }
    return Table(
        Column("dim", order),
        *(Column(name, [float(values[i]) for i in order]) for name, values in vectors.items()),
        Column("cumulated", result.cumulated.tolist()),
        Column("turned_with", [partner.get(i, (None,))[0] for i in order]),
        Column("wavelength", [partner[i][1] if i in partner else None for i in order]),
    )
