"""Sheet of a head's scores by terms, or of one query-key product by dimensions and rotary pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product

import numpy as np
from jaxtyping import Float

from attnscope.render.kit.cells import settled
from attnscope.render.kit.numbers import (
    alike,
    alike_texts,
    counted,
    exact,
    largest_magnitude,
    number,
    parameter,
    significant,
    weight,
    weight_cell,
)
from attnscope.render.kit.palette import scale_of
from attnscope.render.kit.words import sums_words
from attnscope.render.sheet.blocks import Beside, Block, Matrix, Ranking
from attnscope.render.sheet.said import (
    at,
    attention,
    certified,
    features,
    in_sentence,
    numbered,
    of_head,
    unit,
)
from attnscope.render.sheet.sheet import Sheet, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, as_written, both_ways
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Dimensions, HeadAttention, HeadTerms, Influence
from attnscope.results.score import CAP, CONTENT, MASK
from attnscope.vocabulary import Scaling

MOST_KEYS = 40  # of one query
_RESULTS = ("score", "weight")
_SHARES = Scale(0.0, 1.0)

_share = partial(weight, decimals=3)


def sheet(result: HeadTerms | Dimensions, focus: Focus = WHOLE) -> Sheet:
    """Sheet of the terms of a whole head or of one query's weights, or of a product's dimensions."""
    if isinstance(result, Dimensions):
        return _by_dimension(result, focus)
    head, query = result.head, focus.query
    key = None if query is None else shown_key(result, query, focus.key)
    say = said(result, query, key)
    blocks: tuple[Block | Beside, ...] = ()
    main: Block | None = None
    if query is None:
        blocks = (_parts(result, say), Beside(tuple(_matrices(result, say, focus.scale))))
    elif key is not None:
        main = keys_of(result, query, key)
        blocks = (main,)
    sides = counted(len(head.query_tokens), "query"), counted(len(head.key_tokens), "key")
    return saying(
        say,
        head,
        answer=say(result.case) if query is None else say("one_query"),
        blocks=blocks,
        table=lambda: Table.of(*_table(result)),
        legend=(sums_words(head), *features(head)),
        proof=certified(head.certificate, focus.verbose),
        main=main,
        summary=(attention(head.kind, head.tower), " x ".join(sides)),
        record=(*of_head(head), *map(_recorded, result.influences)),
    )


def said(result: HeadTerms, query: int | None = None, key: int | None = None) -> Said:
    """Sentences of `--terms` about this result, or about one query's weight for a key."""
    head, allowed, numbers = result.head, result.head.allowed, {}
    first, second = (*result.ranked, None, None)[:2]
    if query is not None and key is not None:
        steps = {**result.columns, "normaliser": np.broadcast_to(result.normaliser[:, None], allowed.shape)}
        numbers = {name: _texts(values[query, key][None])[0] for name, values in steps.items()}
    facts = {
        "head": head.name,
        "scale": parameter(head.scale),
        "cap": None if head.softcap is None else parameter(head.softcap),
        "parts": [*head.terms, *([] if allowed.all() else [MASK])],
        "sink": result.sinks is not None,
        "pairs": int(allowed.sum()),
        "of": allowed.size,
        "unit": unit(head.key_tokens),
        "first": first,
        "second": second,
        "at": None if query is None else at(head.query_tokens, query),
        "to": None if key is None else at(head.key_tokens, key),
        "query": None if query is None else in_sentence(head.query_tokens, query),
        "key": None if key is None else in_sentence(head.key_tokens, key),
        "own": float(head.weights[query, key]) if numbers else None,
        "even": 1 / int(allowed[query].sum()) if numbers else None,
        "numbers": numbers,
    }
    return Said("terms", result, facts)


def _parts(result: HeadTerms, say: Said) -> Ranking:
    parts = result.influences
    moved, most = [part.moved for part in parts], [part.moved_most for part in parts]
    told = list(zip(*(_added(part, say("forbids")) for part in parts), strict=True)) or [(), (), ()]
    added = ("mean", "adds", say("says_adds")), ("least", "least", ""), ("most", "most", "")
    return Ranking(
        title=say("parts_title"),
        of="part",
        names=tuple(part.name for part in parts),
        table=Table(
            Column("moved", moved, "moved", _share, say("says_moved"), _SHARES),
            Column("moved_most", most, "at most", _share, say("says_most"), _SHARES),
            *(
                Column(name, [getattr(part, name) for part in parts], heading, says=says, told=texts)
                for (name, heading, says), texts in zip(added, told, strict=True)
            ),
        ),
        says=say("recipe"),
        measured=say("measured"),
        marks=(Mark("bar", "own", say("bar"), moved), Mark("tick", "control", say("tick"), most)),
        axis=(0.0, 1.02),
        cells=("moved", "moved_most", "mean", "least", "most"),
    )


def _added(part: Influence, forbids: str) -> list[str]:
    numbers = np.array([part.mean, part.least, part.most])
    return [forbids, "", ""] if np.isnan(numbers).all() else list(map(alike(numbers, 3), numbers))


def _matrices(result: HeadTerms, say: Said, scaling: Scaling) -> Iterator[Matrix]:
    head, masked = result.head, "" if result.head.allowed.all() else f" · {say('hatched')}"
    of = partial(Matrix, words=("query", "key"), rows=head.query_tokens, columns=head.key_tokens)
    extent = _extent(result)
    around = Scale(-extent, extent, "signed")
    ends = say("ends", significant(-extent), significant(extent))
    parts = _drawn(result)
    for name, values in parts.items():
        form = alike(np.array([extent]), 2)
        yield of(name, values=_visible(result, values), scale=around, form=form, says=ends + masked)
    weights = _visible(result, head.weights)
    scale = scale_of(weights, head.allowed, scaling)
    yield of("weight", values=weights, scale=scale, form=weight_cell, says=scale.legend + masked)


def _drawn(result: HeadTerms) -> dict[str, Float[np.ndarray, "query key"]]:
    head = result.head
    parts = {CONTENT: result.scaled}
    if head.softcap is not None:
        parts[CAP] = result.capped - result.scaled
    parts |= head.terms
    return parts | {"score": head.scaled} if len(parts) > 1 else parts


def _extent(result: HeadTerms) -> float:
    """Largest magnitude of any term of a score: one scale for all of them."""
    allowed = result.head.allowed
    return max(largest_magnitude(values[allowed]) for values in _drawn(result).values()) or 1.0


def _visible(result: HeadTerms, values: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    return np.where(result.head.allowed, values, np.nan)


def shown_key(result: HeadTerms, query: int, key: int | None = None) -> int | None:
    """The key whose weight is worked out: `key`, or the strongest; None without any."""
    ranked = _ranked(result, query)
    return None if not ranked else ranked[0] if key is None else key


def _ranked(result: HeadTerms, query: int) -> list[int]:
    allowed, order = result.head.allowed[query], np.argsort(-result.head.weights[query], kind="stable")
    return [key for key in order.tolist() if allowed[key]]


def keys_of(result: HeadTerms, query: int, key: int, most: int = MOST_KEYS) -> Ranking:
    """Table of steps from product to weight for the keys of a query, `key` among them, and for the sink.

    All keys where few, else the strongest, in the order of the text.
    """
    head, count, ranked = result.head, len(result.head.key_tokens), _ranked(result, query)[:most]
    strongest = ranked if key in ranked else [*ranked[: most - 1], key]
    keys = list(range(count)) if count <= most else sorted(strongest)
    others = sorted(set(range(count)) - set(keys))
    sink = () if result.sinks is None else ("sink",)
    say = said(result)
    table = Table(*_columns(result, query, keys))
    return Ranking(
        title="",
        of="key",
        names=(*numbered(head.key_tokens, keys), *sink),
        table=table,
        says=" · ".join((say("recipe"), *_left_out(head, query, others, say))),
        faint=frozenset(row for row, each in enumerate(keys) if not head.allowed[query, each]),
        chosen=frozenset({keys.index(key)}),
        hidden=len(others),
        measured="attention weight",
        marks=(Mark("bar", "own", "", table["weight"].values),),
        written="weight",
        cells=tuple(each.name for each in table.columns if each.scale and each.name != "weight"),
    )


def _left_out(head: HeadAttention, query: int, others: Sequence[int], say: Said) -> Iterator[str]:
    held = [key for key in others if head.allowed[query, key]]
    if held:
        yield say("left_out", len(held), float(head.weights[query, held].sum()))
    if masked := len(others) - len(held):
        yield say("masked_out", masked)


def _columns(result: HeadTerms, query: int, keys: list[int]) -> Iterator[Column]:
    head, extent = result.head, _extent(result)
    steps = dict(result.columns)
    if head.softcap is None and not head.terms:
        del steps["scaled"]
    around = Scale(-extent, extent, "signed")
    headings = {"scaled": f"x {parameter(head.scale)}"}
    scales = {"q·k": None, MASK: None, "weight": _SHARES}
    allowed = head.allowed[query, keys]
    for i, (name, values) in enumerate(steps.items()):
        row, last = values[query, keys], list[float]()
        if result.sinks is not None and result.sink_weights is not None:
            of_sink = {"score": result.sinks[query], "weight": result.sink_weights[query]}
            last = [float(of_sink.get(name, np.nan))]
        seen, every = np.append(np.where(allowed, row, np.nan), last), np.append(row, last)
        yield Column(
            name,
            seen.tolist(),
            headings.get(name, name),
            says=said(result)("says_score") if name == "score" else "",
            scale=scales.get(name, around),
            spared=0 if name in _RESULTS else len(steps) - (-1 if name == MASK else i),
            told=_weights(seen) if name == "weight" else _texts(every),
        )


def _texts(values: Float[np.ndarray, " key"]) -> list[str]:
    finite = values[np.isfinite(values)]
    form = alike(finite, 3) if finite.any() else number
    return ["" if np.isnan(each) else form(each) for each in values.tolist()]


def _weights(values: Float[np.ndarray, " key"]) -> list[str]:
    return ["masked" if np.isnan(each) else _share(each) for each in values.tolist()]


def _recorded(part: Influence) -> tuple[str, object]:
    figures = asdict(part)
    name = figures.pop("name")
    told = ", ".join(f"{figure} {exact(value)}" for figure, value in figures.items())
    return "score part", f"{name}: {told}"


def _table(result: HeadTerms) -> tuple[Sequence[str], Iterator[Sequence[object]]]:
    steps = [name for name in result.columns if name != "q·k"]
    names = ("query", "query_token", "key", "key_token", "q·k", "scale", *steps)
    return names, _facts(result, steps)


def _facts(result: HeadTerms, steps: Sequence[str]) -> Iterator[Sequence[object]]:
    head, columns = result.head, result.columns
    queries, keys = head.query_tokens.labels, head.key_tokens.labels
    for query, key in product(range(len(queries)), range(len(keys))):
        place = query, queries[query], key, keys[key]
        numbers = head.scores[query, key], head.scale, *(columns[name][query, key] for name in steps)
        yield *place, *map(exact, numbers)
    if result.sinks is not None and result.sink_weights is not None:
        blank = [""] * (len(steps) - 2)
        for query, label in enumerate(queries):
            last = exact(result.sinks[query]), exact(result.sink_weights[query])
            yield query, label, "", "sink", "", "", *blank, *last


_MOST_PAIRS = 12


def _by_dimension(result: Dimensions, focus: Focus) -> Sheet:
    head, say = result.head, said_by_dimension(result)
    return saying(
        say,
        head,
        blocks=(_products(result, say, focus.rows), *_turned(result, say)),
        table=lambda: _every_dimension(result),
        legend=(*say.lines("legend"), *features(head)),
        proof=certified(head.certificate, focus.verbose),
        summary=(counted(len(result.products), "dimension"),),
        record=tuple(_record(result)),
    )


def said_by_dimension(result: Dimensions) -> Said:
    """Sentences of `--dims` about this result."""
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


def _every_dimension(result: Dimensions) -> Table:
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
