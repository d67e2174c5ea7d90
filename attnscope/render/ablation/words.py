"""What is said of heads that were taken away, the same in a terminal, a picture and a table."""

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, short, weight_text
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.header import attention_words
from attnscope.results import Ablation
from attnscope.results.claims.ablation import Asks, Effect, Estimate, Group, HeadEffect, Method
from attnscope.tokens import printable

_LONGEST = 60  # cells of an answer


def head_name(one: HeadEffect | Estimate) -> str:
    return f"L{one.layer} H{one.head}"


def place_words(result: Ablation) -> str:
    """Which attention it is."""
    part = f" of {printable(result.tower)}" if result.tower else ""
    return f"{attention_words(result.kind)}{part}"


def answer_words(result: Ablation) -> str:
    """`“door” at 5 [MASK]`: what the answer is and where it stands."""
    answer = result.answer
    told = f"“{settled(fit(answer.text, _LONGEST))}”"
    if answer.position is None:
        return {Asks.WRITTEN: f"the text {told}", Asks.CLASS: f"the class {told}"}.get(
            answer.asks, f"the second text {answer.text}"
        )
    name = settled(result.tokens.named(answer.position))
    return f"{told} {'after' if answer.asks is Asks.NEXT else 'at'} {name}"


def chance_text(probability: float) -> str:
    """A probability; a small one with its exponent."""
    return weight_text(probability, 3) if probability >= 0.0005 or probability == 0 else short(probability)


def signed_text(value: float, decimals: int = 3) -> str:
    """A difference in nats; what rounds to nothing has no sign."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if not text.strip("+-0.") else text.replace("-", "−")


def done_words(result: Ablation) -> str:
    """What was done to how many heads."""
    count = counted(len(result.heads), "head")
    if result.estimates:
        count = f"the first {len(result.heads)} of {counted(len(result.estimates), 'head')}"
    verb = {
        Method.ZERO: "taken away",
        Method.MEAN: "replaced by their means",
        Method.TEXT: "patched from the other text",
        Method.EDGE: "without one edge",
    }[result.method]
    turn = " in turn" if len(result.heads) > 1 else ""
    return f"{count} {verb}{turn}"


def share_of_total(result: Ablation, one: Effect) -> float | None:
    """Which part of the way to the other text one effect goes; None where there is no way to speak of."""
    if result.total is None or abs(result.total.difference) < 10 * max(result.floor.rounding, 1e-6):
        return None
    return one.difference / result.total.difference


def share_text(share: float) -> str:
    """A share in hundredths."""
    text = f"{100 * share:.0f} %"
    return text[1:] if text == "-0 %" else text.replace("-", "−")


def total_words(result: Ablation) -> str:
    """How probable the answer is in the other text; nothing where there is none."""
    if result.total is None or result.other is None:
        return ""
    after, difference = chance_text(result.total.after), signed_text(result.total.difference, 2)
    told = f"in the other text the answer's probability is {after}: a difference of {difference} in all"
    shares = [share_of_total(result, each) for each in result.heads[:1]]
    if not shares or shares[0] is None:
        return f"{told}, too little to speak of shares" if result.heads else told
    return f"{told}; {head_name(result.heads[0])} alone makes {share_text(shares[0])} of it"


def beats_words(one: HeadEffect) -> str:
    """`11 of 11`: how many other heads of its layer make a smaller difference."""
    return f"{one.beaten} of {one.others}" if one.others else "-"


def control_words(result: Ablation) -> str:
    """What the heads are held against."""
    if result.floor.random:
        count = counted(len(result.floor.random), "head")
        drawn = f"{count} of the same layers that are not in the list, drawn with seed {result.floor.seed}"
        return f"others: {drawn}, each alone; the median size of what they do, and how many do less"
    if any(each.others for each in result.heads):
        return "others: all other heads of the same layer, each alone; the median size, and how many do less"
    return "others: the layer has no other head that this one could be held against"


def rounding_words(result: Ablation) -> str:
    """What rounding alone does."""
    floor = result.floor
    batches = "1 batch" if floor.runs == 1 else f"{floor.runs} batches"
    alike = f"in {batches} of other size, or " if floor.runs else ""
    moves = f"at most {short(floor.rounding)}" if floor.rounding else "nothing at all"
    how = f"{alike}with every output of a layer moved by its precision"
    return f"rounding: {how}, the answer moves by {moves}"


_FORETOLD = {
    "patching": "attribution patching",
    "importance": "importance with its sign, Michel et al. 2019",
    "attention-gradient": "weight x gradient that is gone",
    "logit": "what is gone straight from the answer's logit, in logits",
}


def estimate_words(result: Ablation) -> str:
    """How far what was foretold is right; nothing where nothing was."""
    if not result.estimates:
        return ""
    by = _FORETOLD.get(result.foretold_by, result.foretold_by)
    told = f"estimate: what one backward pass foretells ({by})"
    if result.method is Method.ZERO and result.foretold_by == "patching":
        told += ", of zeros the head's importance (Michel et al. 2019) with its sign"
    if result.rank_correlation is None:
        return f"{told}; too few heads to compare the order of both"
    rho = f"{result.rank_correlation:.2f}".replace("-", "−")
    return f"{told}; rank correlation with what happened, over these {len(result.heads)} heads: {rho}"


def at_once(group: Group) -> str:
    """`both at once`, `all 12 at once`."""
    return "both at once" if len(group.heads) == 2 else f"all {len(group.heads)} at once"


def group_words(result: Ablation) -> str:
    """All heads at once; nothing where there is no such run."""
    group = result.group
    if group is None:
        return ""
    effect = group.effect
    told = f"{at_once(group)}: {chance_text(effect.before)} → {chance_text(effect.after)}"
    told += f", difference {signed_text(effect.difference)}, KL {effect.kl:.3f}"
    if group.chance is None:
        return f"{told}; there is no other group of as many heads to hold it against"
    others = f"{counted(group.others, 'other group')} of as many heads in the same layers"
    if group.of_layers:
        several = len({layer for layer, _ in group.heads}) > 1
        others = f"{counted(group.others, 'other layer')}, each whole"
        others = f"{counted(group.others, 'group')} of as many other whole layers" if several else others
    return f"{told}; {others}: median size {group.chance:.3f}, {group.beaten} of them do less"


def proof_words(result: Ablation) -> str:
    """What was read back of what was done."""
    done, verdict = result.intervention, result.verdict
    count = done.read_back + done.lost + done.unseen
    told = f"{GLYPHS[verdict]} {verdict.value}: "
    if done.lost:
        return (
            f"{told}{done.lost} of {count} changed attentions did not come as asked for to the next operation"
        )
    if done.unseen:
        return (
            f"{told}of {count} changed attentions {done.unseen} cannot be read back, since the model makes "
            "something else of its heads' outputs first"
        )
    if not done.faithful:
        return f"{told}watching alone changed the answer's scores"
    how = "within rounding" if result.method is Method.EDGE else "bit for bit"
    return f"{told}{count} of {count} changed attentions read back at the next operation, {how}"


def legend_words(result: Ablation) -> str:
    """What the numbers are."""
    of = "of the whole text" if result.answer.asks is Asks.WRITTEN else "of the answer"
    return (
        f"before, after: probability {of}; difference: of its logarithm, in nats; KL: how far all possible "
        "answers moved, in nats"
    )
