"""What the words of an ablation are filled with. The words: ablate.jinja."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from attnscope.printable import printable, word
from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import label
from attnscope.render.kit.words import quoted as quoted_tokens
from attnscope.render.kit.words import verdict_words
from attnscope.render.sheet.said import Place, in_sentence, name
from attnscope.render.words import Said
from attnscope.results import Kind, Verdict
from attnscope.results.claims.effect import Asks, Effect, HeadEffect, Measured, Part, PlaceEffect
from attnscope.results.claims.ranking import LEVEL
from attnscope.spelling import spelled, told
from attnscope.tokens import Tokens
from attnscope.verbs.ablate.result import Ablation, Case

_LONGEST, _HEADING = 60, 24  # cells of an answer in a sentence, and above a column
_BEYOND = 0.1  # of a gap: what lies further outside of it is no share
_AGREE = 0.1  # of a sum: so near to it two changes are as much as their sum
_NOTHING = 1e-4  # nats or logits, of an answer that something else moves by more
_NAMED = 3  # heads of a group that are named one by one
_INPUTS = 3  # of a head: queries, keys and values

Alone = HeadEffect | PlaceEffect


def said(result: Ablation) -> Said:
    """The words of `ablate` about this result."""
    answer, floor, part = result.answer, result.floor, result.part
    best = _named_first(result)
    total, path, against = result.total, result.path, result.against
    shares = [share(result, each.change) for each in result.alone]
    back = [share(result, each.enough, True) for each in result.places]
    closing = result.case is Case.CLOSES
    moved = share(result, None if best is None else best.change)
    half = _HEADING // (2 if result.measured is Measured.DIFFERENCE else 1)
    little, group = result.measured.little, _group(result)
    at_once = result.group if result.case is Case.TOGETHER else None
    grouped = at_once is not None and abs(at_once.effect.change) < little
    facts = {
        # what was changed, and how
        "part_of": part.value,
        "places": bool(result.places),
        "link": _link(result),
        "query": _asking(result),
        "count": len(result.alone),
        "predicted": len(result.predicted),
        "path": path is not None,
        "readers": _readers(result),
        # what is measured
        "asks": answer.asks.value,
        "answer": _quoted(answer.text),
        "answer_short": _quoted(answer.text, half),
        "against": None if against is None else _quoted(against.text),
        "against_short": None if against is None else _quoted(against.text, half),
        "stands": None if answer.position is None else settled(result.tokens.named(answer.position)),
        "little": little,
        # what came out
        "best": None if best is None else _one(result, best),
        "second": _one(result, result.comes_next) if result.case is Case.FLAT else None,
        "group": group,
        "hardly": result.case is Case.LITTLE or grouped,
        "apart": any(map(result.is_the_answers_own, result.places)),
        "whole": None if best is None or path is None else best.whole,
        "others_read": _others_read(result),
        # another text
        "here": None if total is None else total.before,
        "there": None if total is None else total.after,
        "gap": None if total is None else total.change,
        "far": total is not None and abs(total.change) >= little,
        "closes": any(each and each > 0 for each in shares),
        "part": moved if is_share(moved) else None,
        "stretches": _stretches(result),
        "back": _back(result, back),
        "any_enough": total is not None and any(each.enough is not None for each in result.places),
        "beyond": closing and not all(is_share(each) for each in (*shares, *back) if each is not None),
        # beside what
        "all_others": result.beside,
        "random": len(floor.random),
        "random_layers": _layers([(each.layer, each.head) for each in floor.random]),
        "compared": any(each.controls for each in result.heads),
        "luck": f"{1 / LEVEL:.0f}",
        # whether it was done
        "verdict": verdict_words(result.verdict),
        "stored": result.verdict is Verdict.STORED,
    }
    return Said("ablate", result, facts)


def answer(result: Ablation, say: Said) -> str:
    return say(result.case.value)


def _quoted(text: str, longest: int = _LONGEST) -> str:
    return f"“{settled(fit(printable(text), longest))}”"


def share(result: Ablation, change: float | None, back: bool = False) -> float | None:
    """Which part of the gap between two texts a change closes, or brings `back` in the other text.

    None where there is no gap to speak of.
    """
    gap = 0.0 if result.total is None else result.total.change
    if change is None or not gap or not (back or result.case is Case.CLOSES):
        return None
    return (-change if back else change) / gap


def is_share(part: float | None) -> bool:
    """Whether it is a part of a whole, or nearly: nobody understands -238 % of a gap."""
    return part is not None and -_BEYOND <= part <= 1 + _BEYOND


def share_words(say: Said, parts: Sequence[float | None], changes: Sequence[float | None]) -> list[str]:
    """`38 %`, and of what is no part of the gap by how much it changes the answer."""
    both = zip(parts, changes, strict=True)
    return ["" if part is None else say("share", part if is_share(part) else None, by) for part, by in both]


def tokens_of(result: Ablation) -> Tokens:
    """What the positions of places are of: of a link the keys, else what the part is at."""
    return result.key_tokens if result.link is not None else result.query_tokens


def row_words(result: Ablation, one: Alone) -> str:
    if result.part is Part.POSITION:
        return ""
    return f"L{one.layer}" if one.head is None else name(one.layer, one.head)


def short(result: Ablation, say: Said, one: Alone) -> str:
    """`L3 at 8 opened`, `L3 H11`."""
    positions = one.positions if isinstance(one, PlaceEffect) else ()
    where = settled(told(tokens_of(result), positions)) if positions else ""
    return say("short", row_words(result, one), where)


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


def via(result: Ablation) -> str:
    """`L1H3.k,L2H0,direct`, `L1.k`: the path as an option."""
    path, whole = result.path, _are_whole_layers(result)
    assert path is not None, "there is a path"
    ways = [
        f"L{each.layer}{'' if whole else f'H{each.head}'}"
        + ("" if len(each.inputs) == _INPUTS else f".{each.inputs}")
        for each in path.receivers
    ]
    return ",".join(dict.fromkeys([*ways, "direct"] if path.direct else ways))


def _are_whole_layers(result: Ablation) -> bool:
    """Whether all heads of some layers read the change: otherwise others of the same layers were tried."""
    if result.path is None:
        return False
    heads = [(each.layer, each.head) for each in result.path.receivers]
    mine = _layers(heads)
    same = any(_layers(one.heads) == mine for one in result.path.others)
    return not same and len(heads) > len(mine)


def _layers(heads: Sequence[Place]) -> list[int]:
    return sorted({layer for layer, _ in heads})


def _named_first(result: Ablation) -> Alone | None:
    """What the answer names: what changes it most, or what goes furthest on the way to the other text."""
    if not result.alone:
        return None
    if result.case is Case.CLOSES:
        alone: Sequence[Alone] = result.alone
        return max(alone, key=lambda each: share(result, each.change) or 0.0)
    return result.moves_most


def _one(result: Ablation, one: Alone) -> dict[str, object]:
    """A head, a part of a layer or a position: its name and what the answer becomes without it."""
    positions = one.positions if isinstance(one, PlaceEffect) else ()
    row = row_words(result, one)
    if result.link is not None and one.head is None:
        row = f"layer {one.layer}"
    return {
        "layer": one.layer,
        "row": row,
        "at": _spelled(tokens_of(result), positions) if positions else "",
        "before": one.before,
        "after": one.after,
        "change": one.change,
        "typical": _after(result, one, one.typical if one.controls else None),
        "more": one.controls - one.below,
        "others": one.controls,
        "instead": _quoted(one.instead) if one.instead else "",
    }


def _after(result: Ablation, effect: Effect, size: float | None) -> float | None:
    """What is measured after a change of this size in the direction of this effect."""
    if size is None:
        return None
    change = math.copysign(size, effect.change)
    if result.measured is Measured.CHANCE:
        return min(1.0, effect.before * math.exp(change))
    return effect.before + change


def _spelled(tokens: Tokens, positions: Sequence[int]) -> str:
    return (
        in_sentence(tokens, positions[0])
        if len(positions) == 1
        else f"“{settled(spelled(tokens, positions))}”"
    )


def _link(result: Ablation) -> str:
    """`[MASK] → “opened”`: which attention was cut, where one was; positions only of what stands twice."""
    if result.link is None:
        return ""
    key = result.link_spans[1] if result.link_spans else result.link[1:]
    return f"{_asking(result)} → {_spelled(result.key_tokens, key)}"


def _asking(result: Ablation) -> str:
    if result.link is None:
        return ""
    return _spelled(result.query_tokens, result.link_spans[0] if result.link_spans else result.link[:1])


def _group(result: Ablation) -> dict[str, object] | None:
    group = result.group
    if group is None:
        return None
    apart, effect = sum(each.change for each in result.heads), group.effect
    return {
        "size": len(group.heads),
        "names": [name(*each) for each in group.heads] if len(group.heads) <= _NAMED else [],
        "layers": _layers(group.heads),
        "of_layers": group.of_layers,
        "before": effect.before,
        "after": effect.after,
        "change": effect.change,
        "typical": _after(result, effect, group.typical),
        "others": group.controls,
        "apart": apart,
        "sum": _sum(result, effect.change, apart),
        "instead": _quoted(effect.instead) if effect.instead else "",
    }


def _sum(result: Ablation, together: float, apart: float) -> str:
    """What changes one by one are beside that of all at once."""
    if together * apart < 0:
        return "opposite"
    if abs(together - apart) <= max(_AGREE * abs(apart), result.floor.rounding):
        return "same"
    return "less" if abs(together) > abs(apart) else "more"


def _readers(result: Ablation) -> list[object]:
    """What alone reads the change, along a path: heads by which of their inputs, and `direct` the answer."""
    path = result.path
    if path is None:
        return []
    groups: dict[str, list[Place]] = {}
    for each in path.receivers:
        groups.setdefault(each.inputs, []).append((each.layer, each.head))
    whole = _are_whole_layers(result)
    told: list[object] = [
        {
            "inputs": inputs,
            "names": [name(*each) for each in heads] if len(heads) <= _NAMED else [],
            "count": len(heads),
            "layers": _layers(heads),
            "whole": whole,
        }
        for inputs, heads in groups.items()
    ]
    return [*told, "direct"] if path.direct and told else told


def _others_read(result: Ablation) -> dict[str, object] | None:
    """What else was tried to read the change that changes the answer most, one by one."""
    path = result.path
    if path is None or not path.others:
        return None
    layers = _layers([head for one in path.others for head in one.heads])
    mine = sorted({each.layer for each in path.receivers})
    most = max((one.effect.change for one in path.others), key=abs)
    kind = "head" if len(path.others[0].heads) == 1 else "group"
    if layers != mine:
        kind = "layers" if len(mine) > 1 else "layer"
    nothing = abs(most) <= max(result.floor.rounding, _NOTHING)
    return {"kind": kind, "count": len(path.others), "layers": layers, "most": most, "nothing": nothing}


def _stretches(result: Ablation) -> list[dict[str, object]]:
    """At which token what makes the answers of two texts differ stands, layer by layer."""
    if result.part is not Part.RESIDUAL or not result.of_several_tokens or result.case is not Case.CLOSES:
        return []
    best = [
        max(places, key=lambda each: share(result, each.change) or 0.0)
        for _, places in groupby(result.places, key=lambda each: each.layer)
    ]
    told = []
    for at, places in groupby(best, key=lambda each: _spelled(tokens_of(result), each.positions)):
        there = list(places)
        least = min(share(result, each.change) or 0.0 for each in there)
        told.append({"at": at, "layers": [each.layer for each in there], "least": min(max(least, 0.0), 1.0)})
    return told


def _back(result: Ablation, parts: Sequence[float | None]) -> dict[str, object] | None:
    """The place that brings most of the answer back in the other text, and which part of the gap that is."""
    known = [(part, place) for part, place in zip(parts, result.places, strict=True) if part is not None]
    if not known:
        return None
    part, place = max(known, key=lambda each: each[0])
    return _one(result, place) | {"enough": part, "part": part if is_share(part) else None}
