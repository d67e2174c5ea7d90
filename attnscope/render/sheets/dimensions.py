"""The product of a query and a key, dimension by dimension, and the pairs that a rotary position turns."""

from collections.abc import Iterator, Sequence

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import alike_texts, counted, number, significant, weight
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import certified, features, limits, read, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, as_written, both_ways
from attnscope.results import Dimensions

_MOST_PAIRS = 12
_BESIDE = "the same product with the query's other keys, mean over them; what all keys share moves no weight"


def sheet(result: Dimensions, focus: Focus = WHOLE) -> Sheet:
    """As many of the dimensions as are asked for; a file has all."""
    head, pair = result.head, _pair(result)
    return Sheet(
        title=f"{head.name}, {pair} by dimension",
        setting=setting(head),
        origins=(head.provenance,),
        answer=f"{_sum_words(result)}; {_share_words(result)}.",
        blocks=(_products(result, focus.rows), *_turned(result)),
        table=lambda: _table(result),
        texts=read(head.kind, head.query_tokens, head.key_tokens),
        notes=limits(result.head),
        legend=tuple(_notes(result)),
        proof=certified(head.certificate, focus.verbose),
        summary=(f"{counted(len(result.products), 'dimension')}",),
        record=tuple(_record(result)),
    )


def _pair(result: Dimensions) -> str:
    head = result.head
    return f"{settled(head.query_tokens.named(result.query))} → {settled(head.key_tokens.named(result.key))}"


def _sum_words(result: Dimensions) -> str:
    head, place = result.head, (result.query, result.key)
    products, given = counted(len(result.products), "product"), weight(float(head.weights[place]), 3)
    return f"q·k {number(float(head.scores[place]))}, the sum of {products}, gives the weight {given}"


def _share_words(result: Dimensions) -> str:
    if not result.others:
        return "this query may look at no other key"
    above = result.products - result.beside
    total = float(above.sum())
    side = "below" if total < 0 else "above"
    told = (
        f"it lies {side} the mean of the {counted(len(result.others), 'other key')} by {number(abs(total))}"
    )
    ordered = np.cumsum(-np.sort(-above * np.sign(total or 1.0)))
    needed = int((ordered < abs(total) / 2).sum()) + 1
    return f"{told}, half of which {counted(needed, 'dimension')} can make"


def _products(result: Dimensions, rows: int | None) -> Ranking:
    order = result.order[:rows].tolist()
    products, sums = [float(result.products[i]) for i in order], result.cumulated[: len(order)].tolist()
    beside = [float(result.beside[i]) for i in order]
    so_far = alike_texts(result.cumulated, 2)[: len(order)].tolist()
    others = "others: mean of the query's other keys" if result.others else ""
    score = float(result.head.scores[result.query, result.key])
    left = len(result.products) - len(order)
    rest = float(result.products.sum()) - (sums[-1] if sums else 0.0)
    return Ranking(
        title="products of query and key, largest first",
        of="dim",
        names=tuple(map(str, order)),
        table=Table(
            _column("q", result.query_vector, order, scale=Scale.around(result.query_vector)),
            _column("k", result.key_vector, order, scale=Scale.around(result.key_vector)),
            _column("q x k", result.products, order, scale=Scale.around(result.products)),
            _column("others", result.beside, order, _BESIDE),
            Column("so far", so_far, "so far", as_written),
        ),
        says=f"{counted(left, 'more dimension')} add {number(rest)} (--rows all lists them)" if left else "",
        measured="q x k",
        marks=(
            *both_ways(products),
            Mark("tick", "control", others, beside),
            Mark("dot", "peers", "sum so far", sums),
            Mark("line", "limit", f"q·k {number(score)}", [score]),
        ),
        cells=("q", "k"),
    )


def _column(
    heading: str, values: np.ndarray, order: Sequence[int], says: str = "", scale: Scale | None = None
) -> Column:
    texts = alike_texts(values, 2)
    shown = [float(values[i]) for i in order]
    return Column(heading, shown, heading, says=says, scale=scale, told=[str(texts[i]) for i in order])


def _turned(result: Dimensions) -> Iterator[Ranking]:
    if result.rotation is None:
        return
    found, sums = result.rotation, result.by_pair
    order = np.argsort(-np.abs(sums), kind="stable")[:_MOST_PAIRS].tolist()
    waves = [float(found.wavelength[i]) for i in order]
    told = "tokens until the rotary position has turned a pair once round"
    yield Ranking(
        title="pairs that the rotary position turns, and tokens of one turn",
        of="pair",
        names=tuple(f"{found.first[i]}+{found.second[i]}" for i in order),
        table=Table(
            _column("adds", sums, order, scale=Scale.around(sums)),
            Column("turn", waves, "turn", _wave, told),
        ),
        measured="a pair adds",
        marks=both_ways([float(sums[i]) for i in order]),
        hidden=len(sums) - len(order),
        cells=("turn",),
    )


def _wave(wavelength: float) -> str:
    return "never" if not np.isfinite(wavelength) else significant(wavelength)


def _notes(result: Dimensions) -> Iterator[str]:
    yield f"{number(float(result.head.scaled[result.query, result.key]))} enters the softmax"
    yield from features(result.head)
    if result.unpaired:
        yield f"rotary pairs: {result.unpaired}"


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
