"""What is said of what reaches a token from the input, the same in a terminal, a picture and a table."""

import math

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.header import attention_words
from attnscope.render.sheet.said import signed
from attnscope.results import Flow, Verdict
from attnscope.results.claims.flow import Trust
from attnscope.tokens import Patches, printable

NEARNESS = "nearness"
_FLAT = 0.005  # effects below it would all be the same two digits
_FEW = 10  # tokens, of which a rank correlation says little


def subject(result: Flow) -> str:
    """`what reaches “[MASK]” (7) from the input through 4 layers`."""
    name, position = settled(result.tokens.names[result.query]), result.tokens.positions[result.query]
    return f"what reaches “{name}” ({position}) from the input through {depth(result)}"


def depth(result: Flow) -> str:
    return counted(len(result.layers), "layer")


def token_words(result: Flow, position: int) -> str:
    return f"{result.tokens.positions[position]} {settled(result.tokens.names[position])}"


def place_words(result: Flow) -> str:
    """Which attention it is, and of how many heads the mean."""
    part = f" of {result.tower}" if result.tower else ""
    return f"{attention_words(result.kind)}{part}, mean of {counted(len(result.heads), 'head')}"


def share_text(value: float) -> str:
    """A share; nothing of a token that the query cannot see."""
    return "" if math.isnan(value) else weight_text(value)


def effect_text(result: Flow, position: int) -> str:
    """What replacing a token does: nats that the answer loses, or one less a cosine."""
    if result.ablated is None or math.isnan(value := float(result.ablated.effects[position])):
        return ""
    if value and abs(value) < _FLAT:
        return f"{value:{'+' if result.ablated.answer else ''}.0e}".replace("e-0", "e-")
    return signed(value) if result.ablated.answer else weight_text(value)


def effect_words(result: Flow) -> str:
    """What the effects are, or why there are none."""
    found = result.ablated
    if found is None:
        return f"nothing was replaced: {result.reason}"
    by = f"replaced by {printable(found.replacement)}"
    if found.replacement == "nothing":
        by = "embedded as zeros"
    what = f"a {unit(result)} is"
    if found.together > 1:
        what = f"up to {found.together} {_several(result)} side by side are at once"
    if found.answer:
        chance = weight_text(found.probability, 3)
        return (
            f"effect: nats that “{printable(found.answer)}” ({chance}), the model's answer here, loses in "
            f"log probability where {what} {by}"
        )
    return (
        "effect: the model answers nothing here; 1 less the cosine of the query's last vector before and "
        f"after, where {what} {by}"
    )


def trust_words(result: Flow) -> str:
    """How far the methods agree with the effects, in one line."""
    found = result.ablated
    if found is None:
        return "nothing says how far these can be trusted"
    return (
        f"rank correlation with the size of the effect, over {_replaced(result)}; shuffled: the "
        f"middle nine tenths of {found.shuffles} shuffles (seed {found.seed}), and how many of them it beats"
    )


def special_words(result: Flow) -> str:
    """What a map of patches leaves out: the shares of the query itself and of positions that are no patch."""
    patched = {place for stretch in result.tokens.stretches for place in stretch.positions}
    beside = [place for place in range(len(result.tokens)) if place not in patched or place == result.query]
    if not beside:
        return ""
    told = [
        f"{settled(result.tokens.names[place])} "
        + ", ".join(f"{name} {share_text(float(each[place]))}" for name, each in result.methods.items())
        for place in beside[:4]
    ]
    return f"each map on its own scale, the query framed and not in it; shares of {'; '.join(told)}"


def unit(result: Flow) -> str:
    """What a position stands for."""
    stretch = next(iter(result.tokens.stretches), None)
    return "token" if stretch is None else "patch" if isinstance(stretch, Patches) else "frame"


def _replaced(result: Flow) -> str:
    """`8 tokens`, `49 groups of patches`."""
    found, noun = result.ablated, unit(result)
    assert found is not None, "asked only where something was replaced"
    if found.together > 1:
        return f"{counted(found.count, 'group')} of {_several(result)}"
    return f"{found.count} {noun if found.count == 1 else _several(result)}"


def _several(result: Flow) -> str:
    noun = unit(result)
    return f"{noun}es" if noun == "patch" else f"{noun}s"


def verdict_on_methods(result: Flow) -> str:
    """Whether any method says more of the effects than nearness does, which knows no attention."""
    trust = () if result.ablated is None else result.ablated.trust
    known = [each for each in trust if not math.isnan(each.correlation)]
    near = next((each for each in known if each.method == NEARNESS), None)
    others = [each for each in known if each.method != NEARNESS]
    if not others:
        return "too few tokens for a rank correlation" if trust else ""
    best = max(others, key=lambda each: each.correlation)
    told = f"best of {counted(len(others), 'method')}: {best.method} {correlation_text(best)}"
    if near is None:
        return told
    beaten = best.correlation > near.correlation
    told += f"; nearness alone, which knows no attention, {correlation_text(near)}"
    if best.correlation <= best.high:
        told += "; shuffled effects come as far, so this text does not tell"
    elif not beaten:
        told += ": these say no more of what matters than nearness does"
    elif result.ablated is not None and result.ablated.count < _FEW:
        told += f", over {_replaced(result)}, which is few"
    return told


def correlation_text(trust: Trust) -> str:
    return signed(trust.correlation)


def method_words(result: Flow) -> str:
    """What the columns are."""
    told = [
        f"attention: of L{result.layers[-1]} alone",
        "rollout: weights multiplied through the layers, each half its input (Abnar and Zuidema 2020)",
    ]
    if result.by_norm is not None:
        told.append("by norm: the same of ||sum of a f(x)|| (Kobayashi et al. 2020)")
    if result.flow is not None:
        told.append("flow: share of the largest flow to each token, the same weights as capacities")
    else:
        told.append(f"no flow: there are more than {result.most} {_several(result)}")
    if result.zeroed is not None:
        told.append(
            "zeroing: how far a layer turns a token's vector without the values of another, as shares, "
            "multiplied through the layers (Mohebbi et al. 2023)"
        )
    elif result.no_zeroing:
        told.append(f"no value zeroing: {result.no_zeroing}")
    return "; ".join(told)


def zeroing_words(result: Flow) -> str:
    """Whether the values of value zeroing were seen to be zero; nothing where none were zeroed."""
    done = result.zeroing
    if done is None:
        return ""
    told, count = f"{GLYPHS[done.verdict]} zeroed values: ", done.read_back + done.lost + done.unseen
    if done.lost:
        return f"{told}in {done.lost} of {count} runs the next operation got something else"
    if done.unseen:
        return (
            f"{told}in {done.unseen} of {count} runs they cannot be read back: other operations come between"
        )
    if not done.faithful:
        return f"{told}watching alone changed what a layer returns"
    return f"{told}in {count} of {count} runs read back as the output less weight times value"


def verdict_counts(result: Flow) -> list[tuple[Verdict, str]]:
    """How many heads have each verdict."""
    total = counted(sum(result.certified.values()), "head")
    return [
        (verdict, f"{GLYPHS[verdict]} {verdict.value}: {result.certified[verdict.value]} of {total}")
        for verdict in Verdict
        if result.certified.get(verdict.value)
    ]
