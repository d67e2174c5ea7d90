"""Which passage each sentence of an answer came from: what it loses without them, and what attention says."""

import math
from collections.abc import Iterator

import numpy as np

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, likely, number, percent, signed_cell, significant
from attnscope.render.sheet.blocks import Matrix, Names, Ranking
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.said import begun, name, proof, setting, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table, both_ways
from attnscope.results.claims.citation import (
    ATTENTION,
    BY_NORM,
    COPYING,
    FIT,
    GRADIENT,
    INTEGRATED,
    LEAST,
    REMOVAL,
    WEIGHED,
    Case,
    Citation,
    Method,
    floor_of,
)
from attnscope.results.claims.ranking import AHEAD, LEVEL, times

_SHOWN = 8  # passages of a sentence
_SENTENCES = 3  # that have a ranking of their own where there are more
_SPARED = dict(zip((COPYING, WEIGHED, BY_NORM, INTEGRATED, GRADIENT), range(1, 6), strict=True))
_LONGEST = 44  # characters of a passage or a sentence within another one
_FOLLOWS = 0.5  # R² of a fit below which it foretells little
_RARE = 0.001  # probability below which a factor is told in its place
_UNLIKELY = 0.05  # probability of a token, on average, below which a model would hardly write a sentence
_SAYS = {
    ATTENTION: "share of the attention where the sentence is written, the mean over all heads",
    "copying heads": "the same of heads whose strongest key is the very token that is written",
    "by norm": "share of what attention can move, weights times the length of the values",
    "gradient x input": "what the log probability loses with the passage if it went on as steeply, in nats",
    INTEGRATED: "the same along the way from all passages replaced, in nats",
    WEIGHED: "attention times its gradient, through all layers, in shares",
    FIT: "what the passage adds to the log odds of the sentence",
    REMOVAL: "nats of log probability that the sentence loses without the passage",
}
_HEADINGS = {
    "copying heads": "copying",
    "gradient x input": "grad x in",
    INTEGRATED: "integrated",
    WEIGHED: "attn x grad",
    FIT: "fit",
    REMOVAL: "lost",
}


def sheet(result: Citation, focus: Focus = WHOLE) -> Sheet:
    several, whole = len(result.statements) > 1, focus.verbose
    first = range(len(result.statements) if whole else min(len(result.statements), _SENTENCES))
    rankings = tuple(_ranking(result, i, whole) for i in first)
    matrix = _matrix(result)
    answer = () if result.answer_tokens is None else text(result.answer_tokens)
    return Sheet(
        title=f"which passage {quoted(result.answer)} came from",
        setting=setting(result),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(*((matrix,) if several else ()), *rankings, _found(result)),
        table=lambda: Table.of(("sentence", "passage", "said", "text", *_keys(result)), _facts(result)),
        texts=(*text(result.tokens), *answer),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        departs=(f"seed {result.seed}",) if result.seed else (),
        proof=tuple(proof(result.certified, "head")),
        main=matrix if several else rankings[0],
        record=(("kind", result.kind.value), ("tower", result.tower), ("answer", result.answer)),
        more=tuple(_passage(result, i) for i in first),
    )


def _keys(result: Citation) -> tuple[str, ...]:
    return tuple(each.replace(" ", "_") for each in result.methods)


def _facts(result: Citation) -> Iterator[tuple[object, ...]]:
    for i, statement in enumerate(result.statements):
        for j, passage in enumerate(result.passages):
            numbers = (exact(float(each[i, j])) for each in result.methods.values())
            yield (i, j, statement.text, passage.text, *numbers)


def _named(result: Citation, passage: int) -> str:
    return f"{passage} {quoted(result.passages[passage].text)}"


def _ranking(result: Citation, i: int, whole: bool) -> Ranking:
    order = result.order(i)
    shown = order if whole or len(order) <= _SHOWN + 1 else order[:_SHOWN]
    own, hidden = result.statements[i], len(order) - len(shown)
    lost = [float(result.lost[i, each]) for each in shown]
    columns = [
        _column(method, [float(values[i, each]) for each in shown])
        for method, values in result.methods.items()
    ]
    then = [None if math.isnan(each) else math.exp(min(own.log_probability - each, 0.0)) for each in lost]
    columns.append(Column("probability", then, "answer then", likely, "how probable the sentence then is"))
    floor = result.floor_of(i)
    return Ranking(
        title=f"{quoted(own.text)} ({likely(own.probability)}): what it loses without each passage",
        of="passage",
        names=tuple(_named(result, each) for each in shown),
        table=Table(*columns),
        measured="nats lost",
        marks=(
            *both_ways(
                lost, "more probable without it" if min(lost) < 0 else "", "lost without it", costs=True
            ),
            Mark(
                "span",
                "control",
                "lost or won without anything else, at most",
                [-floor] * len(shown),
                [floor] * len(shown),
                low=True,
            ),
        ),
        written=REMOVAL,
        chosen=frozenset(at for at, each in enumerate(shown) if each in result.sources[i]),
        hidden=hidden,
        unshown=f"{counted(hidden, 'more passage')}{'' if whole else ' (-v)'}",
    )


def _column(method: Method, values: list[float]) -> Column:
    form = signed_cell if any(value < 0 for value in values) or method == REMOVAL else number
    under = "" if method == REMOVAL else "what is given by"
    heading = _HEADINGS.get(method, method)
    return Column(method, values, heading, form, _SAYS[method], spared=_SPARED.get(method, 0), under=under)


def _found(result: Citation) -> Ranking:
    known = [i for i, named in enumerate(result.sources) if named]
    methods = [each for each in result.methods if each != REMOVAL]
    firsts = {each: [result.order(i, each)[0] for i in range(len(result.statements))] for each in methods}
    told = {
        each: f"{sum(firsts[each][i] in result.sources[i] for i in known)} of {len(known)}"
        if len(result.statements) > 1
        else ("yes" if firsts[each][0] in result.sources[0] else "no")
        for each in methods
    }
    return Ranking(
        title="what each would name alone",
        of="method",
        names=tuple(methods),
        table=Table(
            Column("first", [", ".join(map(str, firsts[each])) for each in methods], "passage"),
            Column(
                "found",
                [told[each] if known else "" for each in methods],
                "source?",
                says="whether that is a passage that the sentence comes from, by removal",
            ),
        ),
    )


def _matrix(result: Citation) -> Matrix:
    return Matrix(
        title="what each sentence loses without each passage, in nats",
        words=("sentence", "passage"),
        rows=Names(
            tuple(quoted(each.text) for each in result.statements), tuple(range(len(result.statements)))
        ),
        columns=Names(
            tuple(quoted(each.text) for each in result.passages), tuple(range(len(result.passages)))
        ),
        values=result.lost,
        scale=Scale.around(result.lost, costs=True),
        form=signed_cell,
        measured="nats lost",
        marked=tuple((i, each) for i, named in enumerate(result.sources) for each in named),
        blank="not taken away alone",
    )


def _passage(result: Citation, i: int) -> Passage:
    values = np.full(len(result.tokens), np.nan)
    for passage, lost in zip(result.passages, result.lost[i], strict=True):
        values[list(passage.positions)] = lost
    chosen = {place for each in result.sources[i] for place in result.passages[each].positions}
    title = f"what {quoted(result.statements[i].text)} loses without each passage, in nats"
    return Passage(
        title, result.tokens, values, Scale.around(values, costs=True), signed_cell, frozenset(chosen)
    )


def quoted(text: str) -> str:
    """The beginning of a sentence or a passage, in quotes."""
    return f"“{settled(fit(' '.join(text.split()), _LONGEST))}”"


def _passages(numbers: tuple[int, ...]) -> str:
    """`passage 2`, `passages 2 and 5`."""
    first, last = ", ".join(map(str, numbers[:-1])), str(numbers[-1])
    return f"passages {first} and {last}" if first else f"passage {last}"


def _answer(result: Citation) -> str:
    """Where the answer is from; of several sentences how many, and of the first one that is from any."""
    cases = result.cases
    shown = next((i for i, case in enumerate(cases) if case is Case.FROM), 0)
    sentence = f"{_sentence(result, shown)} {_attention(result, shown)}"
    if len(cases) == 1:
        return sentence
    told = {Case.FROM: "a passage", Case.NONE: "none", Case.SPREAD: "the passages, none of which stands out"}
    counts = [f"{cases.count(case)} {'is' if cases.count(case) == 1 else 'are'} from {told[case]}"
              for case in Case if case in cases]  # fmt: skip
    return f"Of {counted(len(cases), 'sentence')} {', '.join(counts)}. {begun(sentence)}"


def _sentence(result: Citation, i: int) -> str:
    own, named = result.statements[i], result.sources[i]
    said, moves = quoted(own.text), f"by a factor of {_factor(result.floor_of(i))} at most"
    if named:
        each = "either of them" if len(named) == 2 else "any of them" if named[1:] else "that"
        where = f" ({quoted(result.passages[named[0]].text)})" if len(named) == 1 else ""
        least = min(float(result.lost[i, one]) for one in named)
        alone = len(result.passages) == len(named) + 1
        others = "the other" if alone else "others, or half of them together,"
        return (
            f"{said} comes from {_passages(named)}{where}: without {each} {_falls(result, i, least)}, "
            f"without {others} it moves {moves}."
        )
    many = "both passages" if len(result.passages) == 2 else f"all {len(result.passages)} passages"
    left = own.log_probability - own.without_all
    if result.cases[i] is Case.NONE:
        kept = percent(math.exp(-own.without_all)) if own.without_all > 0 else "all"
        beside = f"{likely(own.probability)} with them, {likely(math.exp(min(left, 0.0)))} without"
        return (
            f"{said} comes from none of the passages: without {many} it keeps {kept} of its probability "
            f"({beside})."
        )
    needs = f"{said} needs the passages (without {many} {_falls(result, i, own.without_all)})"
    return f"{needs}{_none_stands_out(result, i)}"


def _none_stands_out(result: Citation, i: int) -> str:
    lost = result.lost[i]
    most = int(np.nanargmax(lost))
    largest, floor = float(lost[most]), floor_of(lost, (most,), result.statements[i].controls)
    falls = _falls(result, i, largest)
    others = int((~np.isnan(lost)).sum()) - 1
    moves = (
        f"without {'the other' if others == 1 else 'others'} it moves by a factor of {_factor(floor)} at most"
    )
    if largest < max(LEAST, AHEAD * floor):
        told = f"without passage {most}, which counts most, {falls}, {moves}"
        return f", but none stands out as its source: {told}."
    return (
        f". Passage {most} counts most: without it {falls}, {moves}. That is {significant(largest / floor)} "
        f"times as many nats; beside {counted(others, 'other passage')} luck is ruled out from "
        f"{significant(times(1, others))} times on, so none is named."
    )


def _falls(result: Citation, i: int, lost: float) -> str:
    own = result.statements[i]
    if lost < 0 or own.probability < _RARE:
        return f"it is {_factor(abs(lost))} times {'less' if lost >= 0 else 'more'} probable"
    return f"it falls from {likely(own.probability)} to {likely(math.exp(own.log_probability - lost))}"


def _factor(lost: float) -> str:
    """By how much more or less probable, as a factor."""
    return significant(math.exp(min(lost, 500.0)))


def _attention(result: Citation, i: int) -> str:
    """Whether attention alone would have found the same."""
    first, given = result.order(i, ATTENTION)[0], result.methods[ATTENTION][i]
    named = result.sources[i]
    if not named:
        return f"By attention alone it would be passage {first}, with {percent(float(given[first]))} of it."
    if set(result.order(i, ATTENTION)[: len(named)]) == set(named):
        return f"Attention alone would have found {'it' if len(named) == 1 else 'them'}."
    return (
        f"Attention alone would have named passage {first} ({percent(float(given[first]))} of it, "
        f"{percent(float(given[named[0]]))} for {_passages(named[:1])})."
    )


def _control(result: Citation) -> str:
    several = max((len(each.controls) for each in result.statements), default=0)
    drawn = f", and random halves of them together ({several})" if several else ""
    return f"the other passages taken away as well{drawn}"


def _notes(result: Citation) -> Iterator[str]:
    yield from result.notes
    if result.kept:
        yield f"not taken away: {quoted(result.kept)}"
    if result.weights is not None:
        yield _fit(result)
    for i, each in enumerate(result.statements):
        usual = math.exp(each.log_probability / max(len(each.positions), 1))
        if usual < _UNLIKELY:
            which = f"sentence {i}" if result.statements[1:] else "this answer"
            yield f"the model would hardly write {which} itself: {likely(usual)} a token"
    absent = dict[str, list[str]]()
    for column in result.columns:
        if column.values is None:
            absent.setdefault(column.absent, []).append(column.method)
    for why, methods in absent.items():
        yield f"no {', no '.join(methods)}: {why}"


def _fit(result: Citation) -> str:
    r2 = [each.r2 for each in result.statements if not math.isnan(each.r2)]
    told = f"R² {min(r2):.2f} on subsets held out" if r2 else "which all did the same"
    if len(r2) > 1:
        told = f"R² {min(r2):.2f} to {max(r2):.2f} on subsets held out"
    poor = ": it foretells little" if r2 and min(r2) < _FOLLOWS else ""
    measured = int((~np.isnan(result.lost[0])).sum())
    return (
        f"{counted(len(result.passages), 'passage')}: a sparse fit to {result.subsets} random halves "
        f"({told}{poor}); {measured} were taken away alone, those that it puts first and some by lot"
    )


def _legend(result: Citation) -> Iterator[str]:
    others = int((~np.isnan(result.lost[0])).sum()) - 1
    yield (
        f"a passage is named where the sentence is at least {significant(math.exp(LEAST))} times less "
        f"probable without it, and loses so many times as much log probability as without any other passage "
        f"or half of the others together, {significant(times(1, others))} here, as losses drawn by lot would "
        f"in 1 of {1 / LEVEL:.0f} texts"
    )
    if result.copying:
        heads = ", ".join(name(*each) for each in result.copying[:8])
        more = f" and {len(result.copying) - 8} more" if result.copying[8:] else ""
        yield f"copying heads: {heads}{more}, whose strongest key among the passages is the token written"
