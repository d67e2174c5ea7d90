"""The score of one query and key taken apart: every part of it, for one pair, one query or a whole head."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnscope.render.kit import palette
from attnscope.render.kit.cells import DIM, HEADING, line, row_heads
from attnscope.render.kit.labels import right, settled
from attnscope.render.kit.numbers import counted, signed_texts, weight_text
from attnscope.render.kit.stage import NO_KEY
from attnscope.render.terminal.strongest import descending
from attnscope.results import HeadTerms, Influence

MOST_KEYS = 40
_FEWEST_KEYS = 3  # that are worth a table
_MOST_HEADING = 10  # cells of a column's heading before it is broken over lines
_MOVED = (
    "moved: total variation between the head's weights and those without the part, mean over queries; "
    "0 nothing, 1 everything"
)


def terms(result: HeadTerms) -> RenderableType:
    """One row per part: what it adds over the allowed pairs, and how far the weights move without it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("part of the score", overflow="fold")
    for heading in ("mean", "least", "most", "moved", "most of a query"):
        table.add_column(heading, justify="right", overflow="fold")  # no digit is left out
    for part in result.influences:
        table.add_row(*_influence(part))
    allowed = result.head.allowed
    of = f"of {allowed.size}, over which mean, least and most are taken" if allowed.any() else "at all"
    told = (f"{counted(int(allowed.sum()), 'allowed pair')} {of}", _MOVED, recipe(result))
    return Group(table, *(Text(each, style=DIM) for each in told))


def _influence(part: Influence) -> list[str]:
    numbers = np.array([part.mean, part.least, part.most])
    told = ["forbids", "", ""] if np.isnan(numbers).all() else signed_texts(numbers, 3).tolist()
    return [part.name, *told, _weight(part.moved), _weight(part.moved_most)]


def _weight(value: float) -> str:
    return "-" if np.isnan(value) else weight_text(value, 3)


def recipe(result: HeadTerms) -> str:
    """`score = q·k x 0.177 -> capped at ±50 + relative position + mask`."""
    head = result.head
    capped = [] if head.softcap is None else [f"capped at ±{head.softcap:g}"]
    parts = [*head.terms, *([] if head.allowed.all() else ["mask"])]
    return "score = " + " + ".join([" → ".join([f"q·k x {head.scale:.4g}", *capped]), *parts])


def query_terms(result: HeadTerms, query: int, key: int | None, width: int) -> RenderableType:
    """All keys of one query, and for one of them (default: the strongest) the sum and the weight worked out.

    Columns that do not fit in `width` cells are left out from the left, and said to be; of many keys the
    strongest are listed.
    """
    head, name = result.head, settled(result.head.query_tokens.names[query])
    title = (("query ", DIM), (f"{query} {name}", HEADING))
    if not head.answered[query]:
        return Group(line(*title, f" has {NO_KEY}"))
    ranked = [each for each in descending(head.weights[query]) if head.allowed[query, each]]
    shown = ranked[0] if key is None else key
    listed = _listed(result, ranked, shown)
    return Group(
        worked_sum(result, query, shown),
        Text(""),
        *_table(result, query, listed, width),
        *(Text(each, style=DIM) for each in _remarks(result, query, listed)),
    )


def query_terms_within(
    result: HeadTerms, query: int, key: int | None, width: int, height: int
) -> RenderableType:
    """The same in so many lines: as many keys as fit, the sum alone where hardly any does."""
    head = result.head
    ranked = [each for each in descending(head.weights[query]) if head.allowed[query, each]]
    if not ranked:
        return query_terms(result, query, key, width)
    shown = ranked[0] if key is None else key
    summed = worked_sum(result, query, shown)
    above = len(textwrap.wrap(summed.plain, max(width, 1))) + 1
    others = len(_table(result, query, [shown], width)) - 1 + len(_remarks(result, query, [shown]))
    room = height - above - others
    if room < _FEWEST_KEYS:
        return Group(summed, Text(recipe(result), style=DIM))
    listed = _listed(result, ranked, shown, min(room, MOST_KEYS))
    remarks = (Text(each, style=DIM) for each in _remarks(result, query, listed))
    return Group(summed, Text(""), *_table(result, query, listed, width), *remarks)


def _listed(result: HeadTerms, ranked: Sequence[int], key: int, most: int = MOST_KEYS) -> list[int]:
    """Every key of a few in the order of the text; of many the strongest, and the one that is worked out."""
    count = len(result.head.key_tokens)
    if count <= most:
        return list(range(count))
    first = ranked[:most]
    return sorted(first if key in first else [*first[: most - 1], key] if most < MOST_KEYS else [*first, key])


def worked_sum(result: HeadTerms, query: int, key: int) -> Text:
    """`5 [MASK] → 7 opened: q·k 12.3 x 0.177 = 2.18 + mask 0 = 2.18; exp(2.18 - 2.72) = weight .582`."""
    head, columns = result.head, result.columns
    names = (
        f"{place} {settled(tokens.names[place])}"
        for place, tokens in ((query, head.query_tokens), (key, head.key_tokens))
    )
    told = [f"q·k {_number(head.scores, query, key)} x {head.scale:.4g}"]
    told.append(f" = {_number(result.scaled, query, key)}")
    if head.softcap is not None:
        told.append(f", capped at ±{head.softcap:g}: {_number(result.capped, query, key)}")
    for part in _added(columns):
        told.append(f" + {part} {_number(columns[part], query, key)}")
    score = _number(columns["score"], query, key)
    if len(told) > 2:
        told.append(f" = {score}")
    sink = "" if result.sinks is None else " and of the sink"
    normaliser = signed_texts(result.normaliser[query : query + 1], 3)[0]
    told.append(f"; exp({score} - {normaliser}) = weight {_weight(head.weights[query, key])}")
    told.append(f", {normaliser} being the log of the sum of exp over its keys{sink}")
    return Text.assemble((" → ".join(names), HEADING), ": ", "".join(told))


def _added(columns: Mapping[str, Float[np.ndarray, "query key"]]) -> list[str]:
    """The columns that are added to the product."""
    return [name for name in columns if name not in ("q·k", "scaled", "capped", "score", "weight")]


def _number(values: Float[np.ndarray, "query key"], query: int, key: int) -> str:
    return _texts(values[query, [key]])[0]


def _texts(values: Float[np.ndarray, " key"]) -> list[str]:
    """The numbers of one column, all in one notation; -∞ where a key is masked."""
    if not np.where(np.isinf(values), 0.0, values).any():
        return ["-∞" if np.isinf(value) else "0" for value in values]
    texts = signed_texts(np.where(np.isinf(values), np.nan, values), 3)
    return ["-∞" if np.isinf(value) else text for value, text in zip(values, texts, strict=True)]


def _table(result: HeadTerms, query: int, keys: Sequence[int], width: int) -> list[Text]:
    """A line of headings per line that they need, one line per key, and one for the sink."""
    head = result.head
    columns = {name: _column(name, values[query, list(keys)]) for name, values in result.columns.items()}
    if result.sinks is not None and result.sink_weights is not None:
        last = {"score": _texts(result.sinks[[query]])[0], "weight": _weight(result.sink_weights[query])}
        columns = {name: [*texts, last.get(name, "")] for name, texts in columns.items()}
    headings = {name: _heading(name, head.scale) for name in columns}
    widths = {
        name: 2 + max(len(text) for text in (*texts, *headings[name])) for name, texts in columns.items()
    }
    heads = row_heads(head.key_tokens, width // 4)
    left_out: list[str] = []
    while len(columns) > 2 and heads.cells + sum(widths[name] for name in columns) > width:
        left_out.append(next(iter(columns)))
        del columns[left_out[-1]]
    kept = [headings[name] for name in columns], [widths[name] for name in columns]
    lines = _headings(*kept, heads.cells)
    for row in range(len(next(iter(columns.values())))):
        weight = head.weights[query, keys[row]] if row < len(keys) else float("nan")
        name = heads.text(keys[row]) if row < len(keys) else "sink".ljust(heads.cells)
        cells = [(right(texts[row], widths[each]), _style(each, weight)) for each, texts in columns.items()]
        lines.append(line(name, *cells))
    if left_out:
        needed = heads.cells + sum(widths.values())
        told = f"left out here: {', '.join(left_out)}; a terminal of {needed} columns shows all"
        lines.append(Text(told, style=DIM))
    return lines


def _column(name: str, values: Float[np.ndarray, " key"]) -> list[str]:
    return [_weight(each) for each in values.tolist()] if name == "weight" else _texts(values)


def _style(column: str, weight: float) -> str:
    return palette.sequential(weight) if column == "weight" else ""


def _heading(name: str, scale: float) -> list[str]:
    """The heading of a column in lines of a few cells."""
    name = f"{name} x {scale:.4g}" if name == "scaled" else name
    return textwrap.wrap(name, _MOST_HEADING)


def _headings(headings: Sequence[Sequence[str]], widths: Sequence[int], lead: int) -> list[Text]:
    depth = max(map(len, headings))
    lowered = [[""] * (depth - len(each)) + list(each) for each in headings]
    leads = [" " * lead] * (depth - 1) + ["key".ljust(lead)]
    return [
        line((leads[level] + "".join(map(right, (each[level] for each in lowered), widths)), DIM))
        for level in range(depth)
    ]


def _remarks(result: HeadTerms, query: int, listed: Sequence[int]) -> list[str]:
    """What the table leaves out."""
    head = result.head
    others = [key for key in range(len(head.key_tokens)) if key not in set(listed)]
    told = [recipe(result)]
    if others:
        share = weight_text(float(np.nansum(head.weights[query, others])))
        told.append(f"{counted(len(others), 'more key')} share {share} of the weight")
    return told
