"""The methods of a flow: how each is called, in which order they stand, what it is, and what it sums to."""

import math
from collections.abc import Iterator

from attnscope.render.kit.numbers import counted, number, signed
from attnscope.results import Flow, Verdict
from attnscope.results.claims.flow import DISTANCE, GRADIENT, INTEGRATED, WEIGHED, Ablated

CALLED = {
    "attention": "attention of the last layer",
    "rollout": "rollout",
    "by norm": "rollout by norm",
    "flow": "the largest flow",
    "zeroing": "value zeroing",
    "own vector": "the share of each one's own last vector",
}
HEADED = {
    "attention": "last layer's attention",
    "zeroing": "value zeroing",
    GRADIENT: "gradient x input",
    INTEGRATED: "integrated gradients",
    WEIGHED: "attention x gradient",
}
_FIRST = "attention"
SIGNED = frozenset({GRADIENT, INTEGRATED})  # numbers of their own, not shares


def ordered(result: Flow, ablated: Ablated) -> list[str]:
    """The last layer's attention, and the others, those that agree best with the effects first."""
    agrees = {each.method: each.correlation for each in ablated.trust if not math.isnan(each.correlation)}
    others = [each for each in result.methods if each != _FIRST]
    return [_FIRST, *sorted(others, key=lambda each: -agrees.get(each, -math.inf))]


def sums(result: Flow) -> Iterator[tuple[Verdict, str]]:
    """What is known of the sums of methods that have one, and how far these are off."""
    for each in result.attributed:
        if each.method == INTEGRATED and each.values is not None:
            yield (
                Verdict.CERTIFIED,
                f"integrated gradients sum to what replacing all costs, {number(abs(each.off))} off, "
                f"each token at most {number(each.each_off)}",
            )


def legend(result: Flow) -> Iterator[str]:
    """What the agreement is and is not."""
    if result.ablated is None:
        return
    yield (
        "agrees with replacing: Spearman's rank correlation of a method's numbers, without their sign, "
        "with the size of the effects; it tells something where the best of all methods does as well in at "
        "most 5 % of shuffles"
    )
    yield f"{DISTANCE}: the nearer the more, which knows no attention"
    yield "shares of attention are of the mean over the heads"


def meant(result: Flow) -> dict[str, str]:
    """What each method is."""
    return {
        "attention": f"of L{result.layers[-1]} alone, mean of {counted(len(result.heads), 'head')}",
        "rollout": "weights multiplied through the layers, each half its input (Abnar and Zuidema 2020)",
        "by norm": "the same of ||sum of a f(x)|| (Kobayashi et al. 2020)",
        "flow": "share of the largest flow to each token, the same weights as capacities",
        "zeroing": "how far a layer turns a token's vector without the values of another, as shares, "
        "multiplied through the layers (Mohebbi et al. 2023)",
        "own vector": "the part of the pooled vector that the token's own last vector is, along it; they sum "
        "to 1, and one is less than 0 where it pulls the other way",
    } | _gradient_words(result)


def _gradient_words(result: Flow) -> dict[str, str]:
    """What each way back by gradients is, and what it sums to."""
    leads = result.ablated is not None and bool(result.ablated.against)
    slope = "its lead" if leads else "its log probability"
    there = {each.method: each for each in result.attributed if each.values is not None}
    said: dict[str, str] = {
        GRADIENT: f"of the whole model's answer: the embedding times the slope of {slope}",
        WEIGHED: "each weight times the slope of the answer's logit with it where that is positive, mean of "
        "the heads, through the layers (Chefer et al. 2021); shares",
    }
    if (summed := there.get(INTEGRATED)) is not None:
        said[INTEGRATED] = (
            f"mean slope on the way from all tokens replaced, {summed.steps} steps, times that way "
            f"(Sundararajan et al. 2017); sums to {signed(summed.whole)}, what replacing them all costs"
        )
    return said
