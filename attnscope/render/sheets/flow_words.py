"""The words of a flow: what its methods and effects are, how far they agree, and what was replaced."""

import math
from collections.abc import Iterator

from attnscope.render.kit.numbers import chance, counted, signed, weight
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.sheet.said import at, proof
from attnscope.results import Flow, Verdict
from attnscope.results.claims.flow import Ablated
from attnscope.tokens import Patches

NEARNESS = "nearness"
_FEW = 10  # tokens, of which a rank correlation says little


def answer(result: Flow) -> str:
    """Whether any method says more of the effects than nearness does, which knows no attention."""
    ablated = result.ablated
    if ablated is None:
        return f"Nothing was replaced: {result.reason}. So nothing says how far these shares can be trusted."
    known = [each for each in ablated.trust if not math.isnan(each.correlation)]
    near = next((each for each in known if each.method == NEARNESS), None)
    others = [each for each in known if each.method != NEARNESS]
    if not others:
        return "There are too few tokens for a rank correlation with what replacing them does."
    best = max(others, key=lambda each: each.correlation)
    told = (
        f"Of {counted(len(others), 'method')} {best.method} agrees best with what replacing does "
        f"({signed(best.correlation)})"
    )
    if near is not None:
        told += f"; nearness alone, which knows no attention, comes to {signed(near.correlation)}"
    if best.correlation <= best.high:
        told += "; shuffled effects come as far, so this text does not tell"
    elif near is not None and best.correlation <= near.correlation:
        told += ": these say no more of what matters than nearness does"
    elif ablated.count < _FEW:
        told += f", over {_replaced(result, ablated)}, which is few"
    return f"{told}."


def control(result: Flow) -> str:
    """What the agreement of a method with the effects is held against."""
    if result.ablated is None:
        return ""
    over = _replaced(result, result.ablated)
    return f"{result.ablated.shuffles} shuffles of the effects (seed {result.ablated.seed}) over {over}"


def notes(result: Flow) -> Iterator[str]:
    yield from result.notes
    yield _beside_the_map(result)
    if result.flow is None:
        yield f"no flow: there are more than {counted(result.most, unit(result))}"
    if result.zeroed is None and result.no_zeroing:
        yield f"no value zeroing: {result.no_zeroing}"


def _beside_the_map(result: Flow) -> str:
    """What a map of patches leaves out: the shares of the query itself and of positions that are no patch."""
    if patches_of(result) is None:
        return ""
    patched = {place for stretch in result.tokens.stretches for place in stretch.positions}
    beside = [place for place in range(len(result.tokens)) if place not in patched or place == result.query]
    told = [
        f"{at(result.tokens, place)} "
        + ", ".join(f"{name} {weight(float(each[place]))}" for name, each in result.methods.items())
        for place in beside[:4]
    ]
    return f"each map on its own scale, the query framed and not in it; shares of {'; '.join(told)}"


def proofs(result: Flow) -> Iterator[tuple[Verdict, str]]:
    """How many heads have each verdict, and whether zeroed values were seen to be zero."""
    yield from proof(result.certified, "head")
    if (done := result.zeroing) is None:
        return
    count = done.read_back + done.lost + done.unseen
    told = f"in {count} of {count} runs read back as the output less weight times value"
    if done.lost:
        told = f"in {done.lost} of {count} runs the next operation got something else"
    elif done.unseen:
        told = f"in {done.unseen} of {count} runs they cannot be read back: other operations come between"
    elif not done.faithful:
        told = "watching alone changed what a layer returns"
    yield done.verdict, f"{GLYPHS[done.verdict]} zeroed values: {told}"


def method_words(result: Flow) -> dict[str, str]:
    """What each method is."""
    return {
        "attention": f"of L{result.layers[-1]} alone",
        "rollout": "weights multiplied through the layers, each half its input (Abnar and Zuidema 2020)",
        "by norm": "the same of ||sum of a f(x)|| (Kobayashi et al. 2020)",
        "flow": "share of the largest flow to each token, the same weights as capacities",
        "zeroing": "how far a layer turns a token's vector without the values of another, as shares, "
        "multiplied through the layers (Mohebbi et al. 2023)",
    }


def effect_words(result: Flow, ablated: Ablated) -> str:
    """What the effects are."""
    by = f"replaced by {ablated.replacement}"
    if ablated.replacement == "nothing":
        by = "embedded as zeros"
    what = f"a {unit(result)} is"
    if ablated.together > 1:
        what = f"up to {counted(ablated.together, unit(result))} side by side are at once"
    if ablated.answer:
        return (
            f"nats that “{ablated.answer}” ({chance(ablated.probability)}), the model's answer here, "
            f"loses in log probability where {what} {by}"
        )
    return (
        "the model answers nothing here; 1 less the cosine of the query's last vector before and after, "
        f"where {what} {by}"
    )


def patches_of(result: Flow) -> Patches | None:
    """The picture whose patches the tokens are; None where they are none, or only some of a text."""
    stretch = next(iter(result.tokens.stretches), None)
    if not isinstance(stretch, Patches) or len(result.tokens.stretches) > 1:
        return None
    return None if result.tokens.texts else stretch


def unit(result: Flow) -> str:
    """What a position stands for."""
    stretch = next(iter(result.tokens.stretches), None)
    return "token" if stretch is None else "patch" if isinstance(stretch, Patches) else "frame"


def _replaced(result: Flow, ablated: Ablated) -> str:
    """`8 tokens`, `49 groups of patches`."""
    of = unit(result)
    if ablated.together > 1:
        return f"{counted(ablated.count, 'group')} of {of}{'es' if of == 'patch' else 's'}"
    return counted(ablated.count, of)
