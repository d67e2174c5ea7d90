"""What is said of a flow and of its methods, in words."""

import math
from collections.abc import Iterator

from attnscope.errors import listed
from attnscope.printable import printable
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, likely, number, signed, weight
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.sheet.said import at, in_sentence, proof
from attnscope.results import Flow, Kind, Verdict
from attnscope.results.claims.flow import DISTANCE, GRADIENT, INTEGRATED, WEIGHED, Ablated, Case
from attnscope.spelling import told
from attnscope.tokens import Patches

_FEW = 10  # tokens, of which a rank correlation says little
_SHORT = {
    "mean": "mean of all tokens",
    "first": "that of the first token",
    "last": "that of the last token",
    "pooler": "the model's own pooler",
}
POOLED = {
    "mean": "the mean of the last vectors of all tokens, special ones too",
    "first": "the last vector of the first token",
    "last": "the last vector of the last token",
    "pooler": "what the model's own pooler makes of the last vector of the first token",
}
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


def answer(result: Flow) -> str:
    """What the answer hangs on, and whether any method says so better than chance and than distance."""
    ablated = result.ablated
    if ablated is None:
        return f"Nothing was replaced: {result.reason}. So nothing says how far these shares can be trusted."
    if result.case is Case.FLAT:
        largest = abs(float(ablated.effects[ablated.ranking[0]]))
        most = f"replacing one of {ablated.count} moves it by {number(largest)} {ablated.unit} at most"
        return f"No {unit(result)} matters to {_asked(result, ablated)}: {most}."
    told = [_hangs(result, ablated), _methods(result, ablated), _distance(ablated), _few(result, ablated)]
    return " ".join(each for each in told if each)


def _asked(result: Flow, ablated: Ablated) -> str:
    where = "after" if result.kind is Kind.DECODER and not ablated.tag else "at"
    lead = f" over “{settled(printable(ablated.against))}”" if ablated.against else ""
    place = "" if ablated.of_span else f" {where} {asked_in_sentence(result)}"
    return f"“{settled(printable(ablated.answer))}”{lead}{place}"


def asked(result: Flow) -> str:
    """`5 [MASK]`, or the vector of the whole text."""
    if result.query_span:
        return settled(told(result.tokens, result.query_span))
    return "the pooled vector" if result.query is None else at(result.tokens, result.query)


def asked_in_sentence(result: Flow) -> str:
    """The same within a sentence: `[MASK]`, `the pooled vector (mean of all tokens)`."""
    if result.query is not None:
        return in_sentence(result.tokens, result.query)
    how = "" if result.pooled is None else _SHORT.get(result.pooled.how, result.pooled.how)
    return f"the pooled vector ({how})"


def pooled_words(how: str) -> str:
    """What the vector of a whole text is made of."""
    return POOLED.get(how, how)


def _hangs(result: Flow, ablated: Ablated) -> str:
    first, *others = ablated.ranking
    effect = float(ablated.effects[first])
    name = part(result, ablated, first)
    if ablated.answer:
        after = min(1.0, ablated.probability * math.exp(-effect))
        goes = f"{likely(ablated.probability)} → {likely(after)}"
        if ablated.against:
            goes = f"lead {signed(ablated.lead)} → {signed(ablated.lead - effect)}"
        told = (
            f"{_asked(result, ablated)} hangs most on {name}: replacing it {_costs(effect)} {ablated.unit} "
        )
        told += f"({goes})"
    else:
        what = asked_in_sentence(result)
        told = f"{what[0].upper()}{what[1:]}" if result.query is None else f"The vector of {what}"
        told += f" turns most where {name} is replaced: {number(effect)} (1 less the cosine)"
    if not others:
        return f"{told}."
    second = float(ablated.effects[others[0]])
    beside = _costs(second) if ablated.answer else number(second)
    return f"{told}; the next, {part(result, ablated, others[0])}, {beside}."


def _costs(effect: float) -> str:
    return f"{'costs' if effect >= 0 else 'gains'} {number(abs(effect))}"


def part(result: Flow, ablated: Ablated, place: int) -> str:
    """The name of what was replaced: a token, a patch, or the first of several and how many more."""
    beside = next((len(each) - 1 for each in ablated.groups if each[0] == place), 0)
    more = f" and {beside} beside it" if beside else ""
    return f"{in_sentence(result.tokens, place)}{more}"


def _methods(result: Flow, ablated: Ablated) -> str:
    best, of = ablated.best, _count(ablated)
    if best is None:
        return f"Only {_replaced(result, ablated)}: too few to rank by any method."
    name, own = CALLED.get(best.method, best.method), signed(best.correlation)
    shuffled, best_of = signed(ablated.best_of_shuffled), f"best of {of} methods" if of > 1 else "the same"
    if result.case is Case.AGREES:
        told = f"{name[0].upper()}{name[1:]} ranks the {plural(result)} alike ({own}; {best_of} on shuffled "
        return f"{told}effects: up to {shuffled})."
    return (
        f"No method ranks the {plural(result)} better than shuffled effects do (best: {name}, {own}; "
        f"shuffled, {best_of}: up to {shuffled})."
    )


def _count(ablated: Ablated) -> int:
    return sum(not math.isnan(each.correlation) for each in ablated.trust if each.method != DISTANCE)


def _distance(ablated: Ablated) -> str:
    near = next((each.correlation for each in ablated.trust if each.method == DISTANCE), math.nan)
    best = ablated.best
    if best is None or not near >= best.correlation:
        return ""
    return f"Distance alone does as well ({signed(near)})."


def _few(result: Flow, ablated: Ablated) -> str:
    told = ablated.count < _FEW and ablated.best is not None
    return f"Only {_replaced(result, ablated)}." if told else ""


def control(result: Flow) -> str:
    """What the agreement of a method with the effects is held against."""
    if result.ablated is None or result.ablated.best is None:
        return ""
    times = f"{result.ablated.controls:,} times"
    return f"the costs handed to other {plural(result)} at random, {times}, which tells what luck agrees with"


def _instead(ablated: Ablated) -> str:
    return "an empty embedding" if ablated.replacement == "nothing" else ablated.replacement


def notes(result: Flow) -> Iterator[str]:
    if result.pooled is not None:
        how = pooled_words(result.pooled.how)
        yield f"the pooled vector is {how} (--from pooled:mean, :first, :last, :pooler)"
    yield from result.notes
    yield _beside_the_map(result)
    yield from _together(result)
    if result.flow is None:
        why = f"there are more than {counted(result.most, unit(result))}"
        yield f"no flow: {'it is that of a single token' if result.by.joins else why}"
    if result.zeroed is None and result.no_zeroing:
        yield f"no value zeroing: {result.no_zeroing}"
    names = CALLED
    for reason in dict.fromkeys(each.absent for each in result.attributed if each.absent):
        absent = [names.get(each.method, each.method) for each in result.attributed if each.absent == reason]
        yield f"no {', '.join(absent)}: {reason}"


def _together(result: Flow) -> Iterator[str]:
    made = result.ablated
    if len(span := result.query_span) > 1:
        yield f"what reaches {asked(result)} is the mean over its tokens {listed(span)}"
        if made is None or not made.of_span:
            what = "the answer is the one" if made and made.answer else "the vector that turns is that"
            yield f"{what} at token {result.query}"
    if result.by.joins:
        told = f"shares are summed over the tokens of a {result.by} and averaged over those of the query; "
        yield f"{told}all tokens of a {result.by} are replaced at once"
        if made is not None and made.answer and not made.of_span:
            yield f"the answer is the one at token {result.answers_at}"


def _beside_the_map(result: Flow) -> str:
    if patches_of(result) is None:
        return ""
    patched = {place for stretch in result.tokens.stretches for place in stretch.positions}
    beside = [place for place in range(len(result.tokens)) if place not in patched or place == result.query]
    told = [
        f"{at(result.tokens, place)} "
        + ", ".join(
            f"{name} {weight(float(each[place]))}"
            for name, each in result.methods.items()
            if name not in SIGNED
        )
        for place in beside[:4]
    ]
    return f"each map on its own scale, the query framed and not in it; shares of {'; '.join(told)}"


def proofs(result: Flow) -> Iterator[tuple[Verdict, str]]:
    """How many heads have each verdict, and whether zeroed values were seen to be zero."""
    yield from proof(result.certified, "head", what=f"{result.sampled} rows in " if result.sampled else "")
    yield from _zeroing(result)
    yield from _sums(result)


def _zeroing(result: Flow) -> Iterator[tuple[Verdict, str]]:
    if (done := result.zeroing) is None:
        return
    count = done.read_back + done.lost + done.unseen
    told = f"zeroed values read back, {count} of {count}"
    if done.lost:
        told = f"zeroed values: in {done.lost} of {count} runs the next operation got something else"
    elif done.unseen:
        told = f"zeroed values: in {done.unseen} of {count} runs they cannot be read back: other operations "
        told += "come between"
    elif not done.faithful:
        told = "zeroed values: watching alone changed what a layer returns"
    mark = "" if done.verdict is Verdict.CERTIFIED else f"{verdict_words(done.verdict)}: "
    yield done.verdict, f"{mark}{told}"


def effect_words(result: Flow, ablated: Ablated) -> str:
    """What the effects are."""
    what = f"a {unit(result)} is"
    if ablated.together > 1:
        what = f"up to {counted(ablated.together, unit(result))} side by side are at once"
    by = f"{what} replaced by {_instead(ablated)}"
    if ablated.against:
        return (
            f"logits of the lead of “{printable(ablated.answer)}” over “{printable(ablated.against)}” "
            f"({signed(ablated.lead)}) that are lost where {by}"
        )
    if ablated.answer:
        return (
            f"nats that “{printable(ablated.answer)}” ({likely(ablated.probability)} here) "
            f"loses in log probability where {by}"
        )
    return f"{_what_turns(result)} before and after, where {by}"


def _what_turns(result: Flow) -> str:
    if result.query is None:
        return "1 less the cosine of the pooled vector"
    return "the model answers nothing here; 1 less the cosine of the query's last vector"


def patches_of(result: Flow) -> Patches | None:
    """The picture whose patches the tokens are; None where they are none, or only some of a text."""
    stretch = next(iter(result.tokens.stretches), None)
    if not isinstance(stretch, Patches) or len(result.tokens.stretches) > 1:
        return None
    return None if result.tokens.texts else stretch


def unit(result: Flow) -> str:
    """What a position stands for."""
    stretch = next(iter(result.tokens.stretches), None)
    if result.by.joins:
        return result.by.value
    return "token" if stretch is None else "patch" if isinstance(stretch, Patches) else "frame"


def plural(result: Flow) -> str:
    return "patches" if unit(result) == "patch" else f"{unit(result)}s"


def _replaced(result: Flow, ablated: Ablated) -> str:
    if ablated.together > 1:
        return f"{counted(ablated.count, 'group')} of {plural(result)}"
    return counted(ablated.count, unit(result))


def ordered(result: Flow, ablated: Ablated) -> list[str]:
    """The last layer's attention, and the others, those that agree best with the effects first."""
    agrees = {each.method: each.correlation for each in ablated.trust if not math.isnan(each.correlation)}
    others = [each for each in result.methods if each != _FIRST]
    return [_FIRST, *sorted(others, key=lambda each: -agrees.get(each, -math.inf))]


def _sums(result: Flow) -> Iterator[tuple[Verdict, str]]:
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
