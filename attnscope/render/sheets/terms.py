"""The scores of a head taken apart: what each part does to its weights, or how one query's come about."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.numbers import (
    MINUS,
    alike,
    counted,
    largest_magnitude,
    number,
    parameter,
    significant,
    weight,
    weight_cell,
)
from attnscope.render.kit.scale import scale_of
from attnscope.render.kit.stage import NO_KEY
from attnscope.render.kit.words.header import model_words, where_words
from attnscope.render.kit.words.weights import sums_words
from attnscope.render.sheet.blocks import Beside, Block, Matrix, Ranking
from attnscope.render.sheet.said import at, certified, features, limits, numbered, of_head, read
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import HeadAttention, HeadTerms, Influence
from attnscope.results.score import CAP, CONTENT, MASK
from attnscope.vocabulary import Scaling

MOST_KEYS = 40  # of one query
_STEPS = ("q·k", "scaled", "capped")  # from the product of query and key to what parts are added to
_RESULTS = ("score", "weight")
_SHARES = Scale(0.0, 1.0)
_MOVED = "share of a query's weight that lies elsewhere without the part (total variation), mean over queries"

_share = partial(weight, decimals=3)


def sheet(result: HeadTerms, focus: Focus) -> Sheet:
    """Of the whole head, or of one query and how the weight of one of its keys comes about."""
    head, query = result.head, focus.query
    blocks: tuple[Block | Beside, ...]
    main: Block | None = None
    if query is None:
        about, answer = "parts of the score", _answer(result)
        blocks = (_parts(result), Beside(tuple(_matrices(result, focus.scale))))
    else:
        about = f"score of query {at(head.query_tokens, query)}"
        answer, blocks = f"This query has {NO_KEY}.", ()
        if (key := shown_key(result, query, focus.key)) is not None:
            main = keys_of(result, query, key)
            answer, blocks = worked_sum(result, query, key), (main,)
    sides = counted(len(head.query_tokens), "query"), counted(len(head.key_tokens), "key")
    return Sheet(
        title=f"{head.name}, {about}",
        setting=f"{where_words(head)} · {model_words(head.provenance)}",
        origins=(head.provenance,),
        answer=answer,
        blocks=blocks,
        table=lambda: Table.of(*_table(result)),
        texts=read(head.kind, head.query_tokens, head.key_tokens),
        notes=limits(head),
        legend=(sums_words(head), *features(head)),
        proof=certified(head.certificate, focus.verbose),
        main=main,
        summary=(where_words(head), " x ".join(sides)),
        record=(*of_head(head), *map(_recorded, result.influences)),
    )


def recipe(result: HeadTerms) -> str:
    """`score = q·k x 0.177 → capped at ±50 + relative position + mask`."""
    head = result.head
    capped = [] if head.softcap is None else [f"capped at ±{parameter(head.softcap)}"]
    parts = [*head.terms, *([] if head.allowed.all() else ["mask"])]
    return "score = " + " + ".join([" → ".join([f"q·k x {parameter(head.scale)}", *capped]), *parts])


def _answer(result: HeadTerms) -> str:
    there = [each for each in result.influences if not np.isnan(each.moved)]
    if not there:
        return f"No query has a key: {recipe(result)}." if result.influences else f"The {recipe(result)}."
    first, *others = sorted(there, key=lambda part: -part.moved)
    told = (
        f"Without {first.name} {_share(first.moved)} of a query's weight would lie elsewhere on average, "
        f"and {_share(first.moved_most)} for the query that it moves most"
    )
    return f"{told}; next comes {others[0].name} with {_share(others[0].moved)}." if others else f"{told}."


def _parts(result: HeadTerms) -> Ranking:
    parts, allowed = result.influences, result.head.allowed
    moved, most = [part.moved for part in parts], [part.moved_most for part in parts]
    pairs = f"{counted(int(allowed.sum()), 'allowed pair')} of {allowed.size}"
    told = list(zip(*map(_added, parts), strict=True)) or [(), (), ()]
    added = (
        ("mean", "adds", f"what the part adds to the score, mean over {pairs}"),
        ("least", "least", "of what it adds"),
        ("most", "most", "of what it adds"),
    )
    return Ranking(
        title="parts of the score",
        of="part",
        names=tuple(part.name for part in parts),
        table=Table(
            Column("moved", moved, "moved", _share, _MOVED, _SHARES),
            Column("moved_most", most, "at most", _share, "of the query where it is largest", _SHARES),
            *(
                Column(name, [getattr(part, name) for part in parts], heading, says=says, told=texts)
                for (name, heading, says), texts in zip(added, told, strict=True)
            ),
        ),
        says=recipe(result),
        measured="share of a query's weight that moves without the part",
        marks=(
            Mark("bar", "own", "mean over queries", moved),
            Mark("tick", "control", "the query that moves most", most),
        ),
        axis=(0.0, 1.02),
        cells=("moved", "moved_most", "mean", "least", "most"),
    )


def _added(part: Influence) -> list[str]:
    numbers = np.array([part.mean, part.least, part.most])
    return ["forbids", "", ""] if np.isnan(numbers).all() else list(map(alike(numbers, 3), numbers))


def _matrices(result: HeadTerms, scaling: Scaling) -> Iterator[Matrix]:
    head, masked = result.head, "" if result.head.allowed.all() else " · hatched or empty: masked"
    of = partial(Matrix, words=("query", "key"), rows=head.query_tokens, columns=head.key_tokens)
    extent = _extent(result)
    around = Scale(-extent, extent, "signed")
    ends = f"red {significant(-extent)}, blue {significant(extent)}, alike in all parts"
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
    """The largest magnitude of anything that adds up to a score: one scale for all of them."""
    allowed = result.head.allowed
    return max(largest_magnitude(values[allowed]) for values in _drawn(result).values()) or 1.0


def _visible(result: HeadTerms, values: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    return np.where(result.head.allowed, values, np.nan)


def shown_key(result: HeadTerms, query: int, key: int | None = None) -> int | None:
    """The key whose weight is worked out: the one that is asked for, or the strongest; None without any."""
    ranked = _ranked(result, query)
    return None if not ranked else ranked[0] if key is None else key


def _ranked(result: HeadTerms, query: int) -> list[int]:
    allowed, order = result.head.allowed[query], np.argsort(-result.head.weights[query], kind="stable")
    return [key for key in order.tolist() if allowed[key]]


def keys_of(result: HeadTerms, query: int, key: int, most: int = MOST_KEYS) -> Ranking:
    """Every step from product to weight of the keys of a query, `key` among them, and of the sink.

    All keys of a few, of more the strongest, in the order of the text.
    """
    head, count, ranked = result.head, len(result.head.key_tokens), _ranked(result, query)[:most]
    strongest = ranked if key in ranked else [*ranked[: most - 1], key]
    keys = list(range(count)) if count <= most else sorted(strongest)
    others = sorted(set(range(count)) - set(keys))
    sink = () if result.sinks is None else ("sink",)
    table = Table(*_columns(result, query, keys))
    return Ranking(
        title="",
        of="key",
        names=(*numbered(head.key_tokens, keys), *sink),
        table=table,
        says=recipe(result) + _left_out(head, query, others),
        faint=frozenset(row for row, each in enumerate(keys) if not head.allowed[query, each]),
        chosen=frozenset({keys.index(key)}),
        hidden=len(others),
        measured="attention weight",
        marks=(Mark("bar", "own", "", table["weight"].values),),
        written="weight",
        cells=tuple(each.name for each in table.columns if each.scale and each.name != "weight"),
    )


def _left_out(head: HeadAttention, query: int, others: Sequence[int]) -> str:
    held, told = [key for key in others if head.allowed[query, key]], []
    if held:
        share = weight(float(head.weights[query, held].sum()))
        told.append(f"{counted(len(held), 'key')} left out share {share} of the weight")
    if masked := len(others) - len(held):
        told.append(f"{counted(masked, 'masked key')} left out")
    return "".join(f" · {each}" for each in told)


def _columns(result: HeadTerms, query: int, keys: list[int]) -> Iterator[Column]:
    head, extent = result.head, _extent(result)
    steps = dict(result.columns)
    if head.softcap is None and not head.terms:
        del steps["scaled"]
    around = Scale(-extent, extent, "signed")
    headings = {"scaled": f"x {parameter(head.scale)}"}
    scales = {"q·k": None, MASK: None, "weight": _SHARES}
    says = {"score": "what enters the softmax"}
    allowed = head.allowed[query, keys]
    for i, (name, values) in enumerate(steps.items()):
        row, last = values[query, keys], _of_sink(result, query, name)
        seen, every = np.append(np.where(allowed, row, np.nan), last), np.append(row, last)
        yield Column(
            name,
            seen.tolist(),
            headings.get(name, name),
            says=says.get(name, ""),
            scale=scales.get(name, around),
            spared=0 if name in _RESULTS else len(steps) - (-1 if name == MASK else i),
            told=_weights(seen) if name == "weight" else _texts(every),
        )


def _of_sink(result: HeadTerms, query: int, name: str) -> list[float]:
    if result.sinks is None or result.sink_weights is None:
        return []
    last = {"score": result.sinks[query], "weight": result.sink_weights[query]}
    return [float(last.get(name, np.nan))]


def _texts(values: Float[np.ndarray, " key"]) -> list[str]:
    finite = values[np.isfinite(values)]
    form = alike(finite, 3) if finite.any() else number
    return ["" if np.isnan(each) else form(each) for each in values.tolist()]


def _weights(values: Float[np.ndarray, " key"]) -> list[str]:
    return ["masked" if np.isnan(each) else _share(each) for each in values.tolist()]


def worked_sum(result: HeadTerms, query: int, key: int) -> str:
    """`5 [MASK] → 7 opened: q·k 12.3 x 0.177 = 2.18 + mask 0 = 2.18; exp(2.18 − 2.72) = weight .582`."""
    head, pair = result.head, (query, key)
    numbers = {name: _texts(values[pair][None])[0] for name, values in result.columns.items()}
    told = f"{at(head.query_tokens, query)} → {at(head.key_tokens, key)}: "
    told += f"q·k {numbers['q·k']} x {parameter(head.scale)} = {numbers['scaled']}"
    if head.softcap is not None:
        told += f", capped at ±{parameter(head.softcap)}: {numbers['capped']}"
    added = [f" + {name} {text}" for name, text in numbers.items() if name not in (*_STEPS, *_RESULTS)]
    told += "".join(added)
    told += f" = {numbers['score']}" if added or head.softcap is not None else ""
    normaliser = _texts(result.normaliser[[query]])[0]
    told += f"; exp({numbers['score']} {MINUS} {normaliser}) = weight {_share(float(head.weights[pair]))}"
    sink = "" if result.sinks is None else " and of the sink"
    return f"{told}, {normaliser} being the log of the sum of exp over its keys{sink}."


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
