"""The words of a composition: which heads are wired, beside what, and what it does not say."""

from collections.abc import Callable, Iterator

from attnscope.render.kit.numbers import cell, counted, weight
from attnscope.render.kit.words.command import asking_of_model
from attnscope.render.kit.words.shell import word
from attnscope.render.sheet.said import name
from attnscope.render.sheet.sheet import Next
from attnscope.results import Composition, Kind
from attnscope.results.claims.composition import Case, Pair, Through

_NOT_USED = "Wired does not mean used: ablate tells."
SHOWN = 5  # pairs by each input
_DIGITS = 6  # of a score at most
_ROTARY = "rotary positions"


def answer(result: Composition) -> str:
    """The pair that lies farthest above chance, how many stand out, and that it is no sign of use."""
    return _SAID[result.case](result)


def _wired(result: Composition) -> str:
    """One pair or several, the best of them with its numbers."""
    pair, of = _best(result), counted(sum(map(result.looked_at, result.through)), "pair")
    layer, number = pair.early
    reading, there = result.readers(pair)
    told, plural = name(*pair.late), pair.through.plural
    numbers = f"{score(result, pair.score)}, random circuits {score(result, pair.chance)}, and "
    numbers += f"{score(result, pair.limit)} is needed to stand out"
    if reading > 1:
        own = f"{reading} of {there} heads of layer {pair.late[0]} read"
        first = f"By their weights, {own} as {plural} what {name(layer, number)} writes: {told} scores "
    else:
        first = f"By their weights, {told} reads as {plural} what {name(layer, number)} writes: it scores "
    count = sum(map(result.standing_out, result.through))
    many = f"In all {count:,} of {of} stand out." if count > 1 else f"No other of {of} stands out."
    return " ".join(each for each in (f"{first}{numbers}.", many, _left_out(result, pair), _NOT_USED) if each)


def _nothing(result: Composition) -> str:
    pair, of = _best(result), counted(sum(map(result.looked_at, result.through)), "pair")
    return (
        f"No two heads are wired beyond chance. Nearest is {named(pair)} through {pair.through.plural}: "
        f"{score(result, pair.score)}, random circuits {score(result, pair.chance)}, and "
        f"{score(result, pair.limit)} is needed to stand out of {of}."
    )


def _cannot_tell(result: Composition) -> str:
    of = counted(sum(map(result.looked_at, result.through)), "pair")
    return (
        f"This model is too small to tell: in {counted(result.hidden, 'dimension')} random circuits score so "
        f"high that no pair could stand out of {of}."
    )


_SAID: dict[Case, Callable[[Composition], str]] = {
    Case.NO_SCORE: lambda result: "No pair of heads has a score.",
    Case.CANNOT_TELL: _cannot_tell,
    Case.NOTHING: _nothing,
    Case.ONE: _wired,
    Case.SEVERAL: _wired,
}


def _best(result: Composition) -> Pair:
    assert result.best is not None, "there is one in every case that tells of one"
    return result.best


def _left_out(result: Composition, pair: Pair) -> str:
    """What of the model is not in the scores and turns what this pair reads."""
    turned = any(each.startswith(_ROTARY) for each in result.outside)
    if not turned or pair.through is Through.VALUE:
        return ""
    return "Rotary positions are left out."


def named(pair: Pair) -> str:
    return f"{name(*pair.early)} → {name(*pair.late)}"


def score(result: Composition, value: float) -> str:
    return weight(value, decimals(result))


def decimals(result: Composition) -> int:
    """As many as tell the best pairs from what they need, three at least."""
    best = [pair for each in result.through for pair in result.ranked(each, most=SHOWN)]

    def tell(digits: int) -> bool:
        return all(cell(pair.score, digits) != cell(pair.limit, digits) for pair in best)

    return next(filter(tell, range(3, _DIGITS)), _DIGITS)


def title(result: Composition, through: Through) -> str:
    """`keys: 51 of 864 pairs stand out`."""
    out, of = result.standing_out(through), counted(result.looked_at(through), "pair")
    return f"{through.plural}: {out:,} of {of} {'stands' if out == 1 else 'stand'} out"


def control(result: Composition) -> str:
    draws = counted(result.draws, "draw")
    return f"random circuits: matrices as strong that point anywhere ({draws} in {result.hidden} dimensions)"


def notes(result: Composition) -> Iterator[str]:
    """What the numbers of one head count, whose pairs are no several findings, and why there is no score."""
    if result.shown is not None:
        own = name(*result.shown)
        yield f"needed: of the pairs of {own} alone; more is, where it was picked out of all heads"
    if result.repeated:
        of = counted(result.repeated + result.layers_paired, "pair")
        yield (
            f"weights are shared: {result.repeated} of {of} of layers have the matrices of an earlier "
            "pair and the same norms between them, so the earlier one stands for all"
        )
    if result.sharing > 1:
        yield (
            f"up to {result.sharing} heads share their keys and values here: their pairs are not "
            f"{result.sharing} findings"
        )
    lacking = [each for each in result.through if not result.looked_at(each)]
    for each in lacking:
        begins = f"through {each.plural}: "
        why = (told.partition(begins)[2] for told in result.reasons)
        yield f"no pair through {each.plural}: {next(filter(None, why), 'no path between layers is proved')}"
    told = tuple(f": through {each.plural}: " for each in lacking)
    yield from (f"no score, {each}" for each in result.reasons if not any(part in each for part in told))


def legend(result: Composition) -> Iterator[str]:
    inside, outside = ", ".join(result.inside), "; ".join(result.outside)
    yield (
        "from weights alone, no text (Elhage et al. 2021, A Mathematical Framework for Transformer "
        f"Circuits); with {inside}; left out: {outside}"
    )
    yield "pairs: first those that go farthest beyond what is needed"
    yield "a score above chance: two heads are wired for each other, not that the model makes use of it"


def following(result: Composition) -> Next | None:
    """Of all pairs whether an answer needs the best one, or what its later head reads; of one its text.

    Not every encoder answers anything, which a result of weights does not tell.
    """
    pair, run = result.best, (result.provenance, result.kind, result.tower)
    if pair is None:
        return None
    layer, head = pair.late if result.shown is None else result.shown
    own = "--layer", str(layer), "--head", str(head)
    if result.shown is None and result.kind is Kind.DECODER and result.read_back_in:
        both = ",".join(f"L{layer}H{head}" for layer, head in (pair.early, pair.late))
        asked = asking_of_model(f"ablate {word(result.read_back_in)}", *run, "--heads", both)
        return Next("does an answer need that link?", asked)
    if result.shown is None:
        return Next("with which others is that head wired?", asking_of_model("compose", *run, *own))
    if not result.read_back_in:
        return None
    opened = asking_of_model(f"heads {word(result.read_back_in)}", *run, *own)
    return Next("what does that head look at?", opened)
