"""The words of what each part brings to an answer: the answer by its case, the control, what sums to what."""

from collections.abc import Iterator

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import number, signed, significant
from attnscope.render.sheet.said import in_sentence
from attnscope.results.claims.contributions import Case, Contribution, Contributions
from attnscope.results.claims.effect import Answer, Asks
from attnscope.results.claims.why import EXACT, LEFT

_LONGEST = 24


def quoted(answer: Answer) -> str:
    return f"“{settled(fit(answer.text, _LONGEST))}”"


def title(result: Contributions) -> str:
    if result.against is None:
        return f"why the model answers {quoted(result.answer)}"
    return f"why the model answers {quoted(result.answer)} and not {quoted(result.against)}"


def measured(result: Contributions) -> str:
    """What all parts sum to."""
    if result.against is None:
        return f"the logit of {quoted(result.answer)}"
    return f"the lead of {quoted(result.answer)} over {quoted(result.against)}"


def _where(result: Contributions) -> str:
    if result.position is None:
        return ""
    place = in_sentence(result.tokens, result.position)
    return f"After {place} " if result.answer.asks is Asks.NEXT else f"At {place} "


def answer(result: Contributions) -> str:
    """How far the answer lies above the other, which part brings most, and what taking that away does."""
    size, where = number(abs(result.logit)), _where(result)
    of = f"logit of {quoted(result.answer)}"
    if result.against is None:
        told = f"the {of} is {number(result.logit)}"
    else:
        lies = "above" if result.logit > 0 else "below"
        told = f"the {of} lies {size} {lies} that of {quoted(result.against)}"
    told = f"{where}{told}" if where else f"{told[:1].upper()}{told[1:]}"
    part = result.largest
    if part is None:
        return f"{told}. No head and no MLP that can be told apart brings anything to it."
    most = f"Of all heads and MLPs, {part.name} brings most of it directly, {signed(part.direct)}"
    if part.direct * result.logit < 0:
        most = f"Of all heads and MLPs, {part.name} does most directly, the other way: {signed(part.direct)}"
    return f"{told}. {most}{_taken(result, part)}."


def _taken(result: Contributions, part: Contribution) -> str:
    """What really becomes of it without the part, beside its controls."""
    assert part.removed is not None, "it was taken away"
    changes = f"taking it away changes {_it(result)} by {signed(part.removed.total)}"
    if result.case is Case.OTHERWISE:
        return f", but {changes}, which is not what that foretells"
    if result.case is Case.ALONE:
        none = "no other MLP" if part.head is None else "no other head in its layer"
        return f"; {changes}, and there is {none} to hold that against"
    others = "any other MLP" if part.head is None else f"any other head of layer {part.layer}"
    most = significant(max(map(abs, part.controls)))
    if result.case is Case.STANDS:
        return f", and {changes}, more than taking away {others} does (at most ±{most})"
    one = "another MLP" if part.head is None else f"another head of layer {part.layer}"
    return f", but {changes}, and taking away {one} changes it as much or more (±{most})"


def _it(result: Contributions) -> str:
    return "the logit" if result.against is None else "the difference"


def control(result: Contributions) -> str:
    instead = "its mean over the other tokens"
    if result.other_tokens is not None:
        instead = "what it is in the other text"
    return (
        "others are the other heads of the layer, of an MLP the other MLPs, each taken away alone in the "
        f"same way: replaced by {instead}, at the place of the answer alone"
    )


def notes(result: Contributions) -> Iterator[str]:
    yield (
        "what a part brings directly does not foretell what is lost without it: later parts are made of it, "
        "and norms rescale what is left"
    )
    left = next((part for part in result.parts if part.name == LEFT), None)
    if left is not None:
        yield (
            f"the word head is not linear: parts are told along its slope at what it was given, and "
            f"{signed(left.direct)} is left over, of no part alone"
        )
    if result.against is None:
        yield (
            "a logit alone does not make an answer likely, only how far it lies above others: --against WORD "
            "tells that"
        )
    yield from result.notes


def proof(result: Contributions) -> str:
    """Both sums, and how far they lie apart."""
    what = "logit" if result.against is None else "logit difference"
    of = "it" if result.against is None else "the larger logit"
    return (
        f"the parts sum to {result.summed:+.5g}, the {what} of the untouched model is {result.logit:+.5g} "
        f"(off {significant(result.residual)} of {of}, {significant(EXACT, 1)} allowed)"
    )


def legend(result: Contributions) -> Iterator[str]:
    ends = "; the logits of both ends of a span are added" if result.answer.asks is Asks.SPAN else ""
    told = "directly: through the final norm at its observed scale and the word head, by no later head or MLP"
    yield told + ends
    yield (
        "MLP: whatever is not linear after the attention of a layer; token, position and segment are "
        "embeddings, which like biases have shares and are not taken away"
    )
