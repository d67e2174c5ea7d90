"""What is said about two runs held against each other, the same in a terminal and in a picture."""

import math

import numpy as np

from attnscope.render.kit.numbers import counted, short
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.results import Difference, Provenance, Verdict
from attnscope.results.claims.difference import Run
from attnscope.tokens import Tokens, printable


def subject(result: Difference) -> str:
    """`L3 H11, b.npz less a.npz`."""
    return f"{result.name(result.shown)}: {printable(result.b.name)} less {printable(result.a.name)}"


def run_words(run: Run, other: Run) -> str:
    """What a run is, and of its provenance what is not the same in the other."""
    parts = [model_words(run.provenance), attention_words(run.kind), *_own(run.provenance, other.provenance)]
    if run.verdict is not Verdict.CERTIFIED:
        parts.append(verdict_words(run.verdict))
    sentence = f" “{printable(run.query_tokens.sentence)}”" if run.query_tokens.texts else ""
    return " · ".join(parts) + sentence


def _own(own: Provenance, other: Provenance) -> list[str]:
    """What pins the weights down and how they were run, as far as the other run has something else there."""
    told = [own.source] if own.source != other.source else []
    told += [
        f"{name} {getattr(own, name)}" if name == "kernel" else str(getattr(own, name))
        for name in ("device", "dtype", "kernel", "route")
        if getattr(own, name) != getattr(other, name)
    ]
    told += [
        f"{name} {own.versions[name]}"
        for name in own.versions
        if other.versions.get(name) != own.versions[name]
    ]
    return [printable(each) for each in told]


def differing_words(result: Difference) -> str:
    """Whether the runs read other tokens, and where; "" where they read the same."""
    if not result.other_tokens:
        return ""
    pairs = zip(result.a.query_tokens.names, result.b.query_tokens.names, strict=True)
    named = [f"{i} {a} / {b}" for i, (a, b) in enumerate(pairs) if a != b]
    more = f", and {len(named) - 4} more" if len(named) > 4 else ""
    listed = f": {', '.join(named[:4])}{more}" if named else ""
    return f"other tokens at {counted(result.other_tokens, 'position')}{listed}"


def control_words(result: Difference) -> str:
    """What the divergences are to be held against."""
    told = [f"{counted(len(result.pairs), 'head')} looked at"]
    if np.isfinite(result.rounding).any():
        told.append(f"{result.within_rounding} differ by no more than rounding may make them")
    else:
        told.append("none has a tolerance: it cannot be told what rounding does")
    if math.isfinite(result.unlike):
        told.append(
            f"two neighbouring heads of a layer of the first run differ by {nats(result.unlike)} nats"
        )
    return " · ".join(told)


def shown_words(result: Difference) -> str:
    """The head that is shown: how far apart its rows are, and where most."""
    i = result.shown
    if math.isnan(result.divergences[i]):
        return f"{result.name(i)}: no query has a key"
    if result.largest[i] == 0:
        return f"{result.name(i)}: the same to the bit"
    row = int(np.nan_to_num(result.rows[i], nan=-1.0).argmax())
    named = result.a.query_tokens.named(row)
    told = f"{result.name(i)}, {nats(result.divergences[i])} nats on average"
    return f"{told}, most for query {printable(named)} ({nats(result.rows[i, row])})"


def against_rounding(result: Difference, i: int) -> str:
    """`3.1e-8, as rounding`, or how many times rounding."""
    largest, rounding = float(result.largest[i]), float(result.rounding[i])
    if largest == 0:
        return "the same to the bit"
    if math.isnan(rounding):
        return ""
    if largest <= rounding:
        return "within rounding"
    times = largest / rounding
    return f"{times:,.0f} x rounding" if times < 1e6 else "over 1,000,000 x rounding"


def nats(value: float) -> str:
    """`.210`, small ones with an exponent."""
    value = float(value)
    return "-" if math.isnan(value) else f"{value:.3f}".removeprefix("0") if value >= 5e-4 else short(value)


def signed_panel(result: Difference) -> Panel:
    """What the second run gives more, for a table or a heat map around 0; labels are those of the first."""
    signed = result.signed
    visible = ~np.isnan(signed) & ((result.before > 0) | (result.after > 0))
    return Panel(
        show="scaled",
        row_word="query",
        row_tokens=_both(result.a.query_tokens, result.b.query_tokens),
        column_tokens=_both(result.a.key_tokens, result.b.key_tokens),
        values=signed,
        visible=visible,
        answered=visible.any(axis=1),
    )


def _both(a: Tokens, b: Tokens) -> Tokens:
    """The tokens of the first run, named after both where they are not the same."""
    from dataclasses import replace

    items = tuple(
        first if first.name == second.name else replace(first, text=f"{first.name}/{second.name}", piece="")
        for first, second in zip(a.items, b.items, strict=True)
    )
    return replace(a, items=items)


def certified_words(result: Difference) -> list[tuple[Verdict, str]]:
    """The verdicts of both runs."""
    if result.a.verdict is result.b.verdict:
        return [(result.a.verdict, f"{result.a.verdict.value}: both runs")]
    return [(run.verdict, f"{run.verdict.value}: {printable(run.name)}") for run in (result.a, result.b)]
