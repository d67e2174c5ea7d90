"""The small words around the answer of an ablation: names, columns, control, legend, what is proved."""

from collections.abc import Iterator
from typing import NamedTuple

from attnscope.printable import word
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, number, significant
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.kit.words.command import label
from attnscope.render.kit.words.header import quoted as quoted_tokens
from attnscope.render.sheet.said import Place, in_sentence, name
from attnscope.render.sheets.ablation_measured import NAMED, beyond, listed_words, only, receivers, via
from attnscope.results import Ablation, Kind, Verdict
from attnscope.results.claims.ablation import Case, Method
from attnscope.results.claims.effect import Asks, Group, HeadEffect, PlaceEffect
from attnscope.results.claims.intervention import Part
from attnscope.results.claims.ranking import LEVEL
from attnscope.spelling import spelled


class Done(NamedTuple):
    """What was done to something, in a sentence and above a column, and what stands there then."""

    told: str
    short: str
    instead: str


_DONE = {
    Method.ZERO: Done("removed", "removed", "output replaced by zeros"),
    Method.MEAN: Done("replaced by its mean", "replaced", "output set to its mean"),
    Method.TEXT: Done("patched from the other text", "patched", "its output in the other text"),
    Method.LINK: Done("without the one link {}", "link cut in", "the link cut"),
}


def done(result: Ablation) -> str:
    """`removed`: what was done to each; of a link, which a place names itself, `cut`."""
    if result.part is Part.POSITION:
        return "replaced by the mean of the others"
    if result.places and result.link is not None:
        return "cut"
    return _DONE[result.method].told.format(link(result))


def without(result: Ablation, what: str) -> str:
    """`Without L3 H11`, `With L3 H11 patched from the other text`: how a sentence begins."""
    if result.method is Method.LINK and not result.places:
        said = f"Without the one link {link(result)} in {what}"
    else:
        plain = result.method in (Method.ZERO, Method.LINK)
        said = f"Without {what}" if plain else f"With {what} {_DONE[result.method].told}"
    return f"{said}, {only(result)}," if result.path is not None else said


def alone(result: Ablation) -> str:
    """`each removed alone`, or `each removed alone, for the keys of L1 H3 only`."""
    told = f"each {done(result)} alone"
    if result.method is Method.LINK and not result.places:
        told = f"each with the one link {link(result)} cut in it alone"
    return told + (f", {only(result)}" if result.path is not None else "")


def like(result: Ablation) -> str:
    """How it is with others: `without`, `with` or `in` them."""
    return {Method.ZERO: "without", Method.LINK: "in"}.get(result.method, "with")


def each_head(result: Ablation) -> str:
    """`without each head`: what was done to every head of a grid."""
    if result.method is Method.ZERO:
        return "without each head"
    short = _DONE[result.method].short
    return "with the link cut in each head" if result.method is Method.LINK else f"with each head {short}"


def done_words(result: Ablation) -> str:
    """`48 heads removed in turn`."""
    count = counted(len(result.heads), "head")
    if result.predicted:
        count = f"the first {len(result.heads)} of {counted(len(result.predicted), 'head')}"
    told = done(result).replace("the one link", "the link")
    told = told.replace("its mean", "their means") if len(result.heads) > 1 else told
    told = f"{told}, {only(result)}," if result.path is not None else told
    return f"{count} {told}{' in turn' if len(result.heads) > 1 else ''}".removesuffix(",")


def link(result: Ablation) -> str:
    """`[MASK] → “opened”`: which attention was cut, where one was; positions only of what stands twice."""
    if result.link is None:
        return ""
    query, key = result.link
    if result.link_spans:
        asked, given = result.link_spans
        return (
            f"{settled(spelled(result.query_tokens, asked))} → {settled(spelled(result.key_tokens, given))}"
        )
    return f"{in_sentence(result.query_tokens, query)} → {in_sentence(result.key_tokens, key)}"


def removed(result: Ablation) -> str:
    """What heads the names of heads: `removed`."""
    return _DONE[result.method].short


def texts(result: Ablation) -> Iterator[str]:
    """What was read, by the decoder too, and the text that outputs were taken from."""
    both = result.kind is not Kind.ENCODER and result.target is not None
    first = "reads   " if both else "A " if result.other is not None else ""
    sides = (first, result.tokens), ("decoder ", result.target if both else None), ("B ", result.other)
    yield from (
        f"{side}{quoted_tokens(tokens).plain}"
        for side, tokens in sides
        if tokens is not None and tokens.texts
    )


def asked_again(result: Ablation) -> tuple[str, ...]:
    """The options that name the answer, and what it is held against, as they were asked for."""
    answer = result.answer
    several = len(answer.ids) > 1 and answer.asks is Asks.NEXT  # without it one token would be asked about
    mine = () if answer.likeliest and not several else ("--answer", word(result.answer.text))
    if answer.asks is Asks.TAG and answer.position is not None:
        mine = ("--from", label(result.tokens, answer.position), *mine)
    mine = mine if result.against is None else (*mine, "--against", word(result.against.text))
    return mine if result.path is None else (*mine, "--via", via(result))


def group_words(result: Ablation, group: Group) -> str:
    """`L3 H7 and L3 H11`, `all 12 heads of layer 3`, `these 5 heads`."""
    layers = {layer for layer, _ in group.heads}
    if group.of_layers and len(layers) == 1:
        return f"all {len(group.heads)} heads of layer {layers.pop()}"
    if len(group.heads) > NAMED:
        return f"these {len(group.heads)} heads"
    named = [name(*each) for each in group.heads]
    return listed_words(named)


def control(result: Ablation) -> str:
    """What the heads are held against, and what stands in the place of what was taken away."""
    floor, instead = result.floor, _DONE[result.method].instead
    if floor.random:
        layers = sorted({each.layer for each in floor.random})
        where = f"layer {layers[0]}" if len(layers) == 1 else "these layers"
        other = counted(len(floor.random), "other head")
        return f"{other} of {where}, each taken away alone{_receivers(result)}; {instead}"
    if any(each.controls for each in result.heads):
        return f"the other heads of the same layer, each taken away alone{_receivers(result)}; {instead}"
    return f"none, the layer has no other head{_receivers(result)}; {instead}"


def _receivers(result: Ablation) -> str:
    return f", and {told} to read it in turn" if (told := receivers(result)) else ""


def legend(result: Ablation) -> Iterator[str]:
    """What stood in the place of outputs, the rules behind the words of the answer, what rounding does."""
    if result.method is not Method.ZERO:  # of which the line of controls says all
        yield result.how
    ends = [each.change for each in result.heads]
    if result.case is Case.CLOSES and not result.places and (told := beyond(result, ends)):
        yield told
    if result.path is not None:
        yield (
            f"{only(result)}: no other head reads the change; MLPs and norms on the way make of it what they "
            "would, and all that comes after the readers is computed anew (path patching, Wang et al. 2022)"
        )
    if result.answer.asks is Asks.VECTOR:
        yield "the text's vector: the mean of the last vectors of its tokens; cosine 1 is the same direction"
    group, little = result.group if result.case is Case.TOGETHER else None, result.measured.little
    if result.case is Case.LITTLE or (group is not None and abs(group.effect.change) < little):
        yield f"hardly, or not by much: by less than {number(little)} {result.unit}"
    elif result.case is Case.FLAT:
        yield (
            "to stand out one or two move it so many times as much as any other that of as "
            f"many alike they would by luck in 1 of {1 / LEVEL:.0f} texts"
        )
    floor = result.floor
    alike = f"in {counted(floor.runs, 'batch')} of other size, or " if floor.runs else ""
    moves = f"at most {significant(floor.rounding)}" if floor.rounding else "nothing at all"
    yield f"rounding: {alike}with every output of a layer moved by its precision, the answer moves by {moves}"
    if result.predicted and result.rank_correlation is None:
        yield "predicted: too few heads to compare their order with what happened"
    elif result.predicted:
        yield "predicted: the heads beside which these stand are those that were predicted to do less"


def proof_words(result: Ablation) -> str:
    """Whether the change was read back in the model."""
    done, told = result.intervention, f"{verdict_words(result.verdict)}: "
    count, changed = done.read_back + done.lost + done.unseen, _changed(result)
    if done.lost:
        return f"{told}{done.lost} of {count} {changed} did not come as asked for to the next operation"
    if done.unseen:
        heads = "its heads' outputs"
        return (
            f"{told}of {count} {changed} {done.unseen} cannot be read back, since the model makes something "
            f"else of {'what is handed on' if result.places else heads} first"
        )
    if not done.faithful:
        return f"{told}watching alone changed the answer's scores"
    was = "change was" if len(result.heads) == 1 and result.group is None else "changes were"
    when = " when it was run" if result.verdict is Verdict.STORED else ""
    return f"{told}the {was} read back in the model{when}"


def read_back(result: Ablation) -> str:
    """How many changed attentions came as asked for to the model's next operation."""
    done = result.intervention
    count = done.read_back + done.lost + done.unseen
    near = result.method is Method.LINK or result.part in (Part.MLP, Part.POSITION)
    how = "within rounding" if near else "bit for bit"
    return f"{done.read_back} of {count} {_changed(result)} read back at the next operation, {how}"


def _changed(result: Ablation) -> str:
    named = {Part.MLP: "MLPs", Part.RESIDUAL: "layers", Part.POSITION: "vectors of positions"}
    return f"changed {named.get(result.part, 'attentions')}"


def at_once(group: Group) -> str:
    return "both at once" if len(group.heads) == 2 else f"all {len(group.heads)} at once"


def most(result: Ablation) -> Place:
    """Layer and head of the one that mattered most."""
    return result.heads[0].layer, result.heads[0].head


def path_record(result: Ablation) -> tuple[tuple[str, str], ...]:
    """The path as a picture's record has it; nothing where there is none."""
    return () if result.path is None else (("via", via(result)),)


def rank(beside: HeadEffect | PlaceEffect | Group, of_group: bool) -> str:
    """`largest of 12`, `2nd of 12`: a rank among itself and the others that it is held against."""
    place, count = 1 + beside.controls - beside.below, beside.controls + 1
    which = "largest" if place == 1 else f"{place}{_ordinal(place)}"
    return f"{which} of {count}{' groups' if of_group else ''}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
