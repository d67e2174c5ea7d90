"""Sentences about where an answer is from."""

import math
from collections.abc import Iterator

import numpy as np

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, likely, percent, significant
from attnscope.render.sheet.said import begun, name
from attnscope.results.claims.citation import (
    ATTENTION,
    FIT,
    LEAST,
    REMOVAL,
    Case,
    Citation,
    floor_of,
)
from attnscope.results.claims.flow import INTEGRATED, WEIGHED
from attnscope.results.claims.ranking import AHEAD, LEVEL, times

_LONGEST = 44  # characters of a passage or a sentence within another one
_FOLLOWS = 0.5  # R² of a fit below which it foretells little
_RARE = 0.001  # probability below which a factor is told in its place
_UNLIKELY = 0.05  # probability of a token, on average, below which a model would hardly write a sentence


def quoted(text: str) -> str:
    """The beginning of a sentence or a passage, in quotes."""
    return f"“{settled(fit(' '.join(text.split()), _LONGEST))}”"


def passages(numbers: tuple[int, ...]) -> str:
    """`passage 2`, `passages 2 and 5`."""
    first, last = ", ".join(map(str, numbers[:-1])), str(numbers[-1])
    return f"passages {first} and {last}" if first else f"passage {last}"


def answer(result: Citation) -> str:
    """Where the answer is from; of several sentences how many, and of the first one that is from any."""
    cases = result.cases
    shown = next((i for i, case in enumerate(cases) if case is Case.FROM), 0)
    sentence = f"{_sentence(result, shown)} {attention(result, shown)}"
    if len(cases) == 1:
        return sentence
    told = {Case.FROM: "a passage", Case.NONE: "none", Case.SPREAD: "the passages, none of which stands out"}
    counts = [f"{cases.count(case)} {'is' if cases.count(case) == 1 else 'are'} from {told[case]}"
              for case in Case if case in cases]  # fmt: skip
    return f"Of {counted(len(cases), 'sentence')} {', '.join(counts)}. {begun(sentence)}"


def _sentence(result: Citation, i: int) -> str:
    own, named = result.statements[i], result.sources[i]
    said, moves = quoted(own.text), f"by a factor of {factor(result.floor_of(i))} at most"
    if named:
        each = "either of them" if len(named) == 2 else "any of them" if named[1:] else "that"
        where = f" ({quoted(result.passages[named[0]].text)})" if len(named) == 1 else ""
        least = min(float(result.lost[i, one]) for one in named)
        alone = len(result.passages) == len(named) + 1
        others = "the other" if alone else "others, or half of them together,"
        return (
            f"{said} comes from {passages(named)}{where}: without {each} {_falls(result, i, least)}, without "
            f"{others} it moves {moves}."
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
    """That none is the source; or that one may be, and how much further out luck can put it."""
    lost = result.lost[i]
    most = int(np.nanargmax(lost))
    largest, floor = float(lost[most]), floor_of(lost, (most,), result.statements[i].controls)
    falls = _falls(result, i, largest)
    others = int((~np.isnan(lost)).sum()) - 1
    moves = (
        f"without {'the other' if others == 1 else 'others'} it moves by a factor of {factor(floor)} at most"
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
    """`it falls from 99 % to 1 in 4,050`; of what is rare anyway by how much."""
    own = result.statements[i]
    if lost < 0 or own.probability < _RARE:
        return f"it is {factor(abs(lost))} times {'less' if lost >= 0 else 'more'} probable"
    return f"it falls from {likely(own.probability)} to {likely(math.exp(own.log_probability - lost))}"


def factor(lost: float) -> str:
    """By how much more or less probable, as a factor."""
    return significant(math.exp(min(lost, 500.0)))


def attention(result: Citation, i: int) -> str:
    """Whether attention alone would have found the same."""
    first, given = result.order(i, ATTENTION)[0], result.methods[ATTENTION][i]
    named = result.sources[i]
    if not named:
        return f"By attention alone it would be passage {first}, with {percent(float(given[first]))} of it."
    if set(result.order(i, ATTENTION)[: len(named)]) == set(named):
        return f"Attention alone would have found {'it' if len(named) == 1 else 'them'}."
    return (
        f"Attention alone would have named passage {first} ({percent(float(given[first]))} of it, "
        f"{percent(float(given[named[0]]))} for {passages(named[:1])})."
    )


def control(result: Citation) -> str:
    several = max((len(each.controls) for each in result.statements), default=0)
    drawn = f", and random halves of them together ({several})" if several else ""
    return f"the other passages taken away as well{drawn}"


def notes(result: Citation) -> Iterator[str]:
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


def legend(result: Citation) -> Iterator[str]:
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


SAYS = {
    ATTENTION: "share of the attention where the sentence is written, the mean over all heads",
    "copying heads": "the same of heads whose strongest key is the very token that is written",
    "by norm": "share of what attention can move, weights times the length of the values",
    "gradient x input": "what the log probability loses with the passage if it went on as steeply, in nats",
    INTEGRATED: "the same along the way from all passages replaced, in nats",
    WEIGHED: "attention times its gradient, through all layers, in shares",
    FIT: "what the passage adds to the log odds of the sentence",
    REMOVAL: "nats of log probability that the sentence loses without the passage",
}
HEADINGS = {
    "copying heads": "copying",
    "gradient x input": "grad x in",
    INTEGRATED: "integrated",
    WEIGHED: "attn x grad",
    FIT: "fit",
    REMOVAL: "lost",
}
