"""What the words of an explanation are filled with. The words: render/words/explain.jinja."""

import math

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.sheet.said import at, in_sentence, name, unit
from attnscope.render.sheets import finding_words
from attnscope.render.sheets import why as why_words
from attnscope.render.words import Said
from attnscope.results import Ablation, Explanation, Finding
from attnscope.results.claims.explanation import Head, Lost, Read
from attnscope.results.claims.ranking import DependsOn, Group, much

_NAMED, _LONGEST = 3, 30  # heads of which figures are told; cells of an answer
_FOLLOWED = 2  # heads of a kind of which it is told what they follow


def said(result: Explanation) -> Said:
    """The words of `explain` about this result."""
    return Said("explain", _facts(result))


def place_of(found: Finding, head: Head) -> tuple[int, int]:
    """Its row and column."""
    return found.layers.index(head[0]), found.heads.index(head[1])


def drawn_by(found: Finding) -> dict[DependsOn, list[Head]]:
    """The heads that give the key much more than if all got the same, by what draws them to it."""
    groups, even = dict[DependsOn, list[Head]](), found.even_attention
    assert even is not None, "a pair has keys"
    for place in found.ranking:
        on = found.evidence.depends_on(place)
        if on not in (None, DependsOn.KEY) and found.weights[place] >= much(even[place]):
            groups.setdefault(on, []).append((found.layers[place[0]], found.heads[place[1]]))
    return {on: groups[on] for on in (DependsOn.WORD, DependsOn.CONTEXT, DependsOn.POSITION) if on in groups}


def fact_of(result: Explanation, part: Lost) -> dict[str, object]:
    """What was replaced, of several tokens the first and how many more, and what that takes."""
    first = in_sentence(result.key_tokens, part.positions[0])
    return {"name": first, "beside": len(part.positions) - 1, "change": part.change}


def _facts(result: Explanation) -> dict[str, object]:
    found, out = result.finding, result.standing_out
    find = finding_words.said(found)
    by = drawn_by(found)
    heads, reached = _named(result)
    first = [head for on in (DependsOn.WORD, DependsOn.CONTEXT) for head in by.get(on, [])[:_FOLLOWED]]
    away = {"place": Group.POSITION, "key": Group.KEY}
    return {
        "query": in_sentence(result.query_tokens, result.query),
        "key": in_sentence(result.key_tokens, result.key),
        "from": at(result.query_tokens, result.query),
        "to": at(result.key_tokens, result.key),
        "unit": unit(result.key_tokens),
        # what find says
        "found": finding_words.answer(found),
        "link": find("link"),
        "shuffled": find("shuffled"),
        "held_against": find("control"),
        "part": find.facts["part"],
        "parts": find.facts["parts"],
        "asked": len(found.places),
        "clear": [name(*head) for head in out],
        "heads": len(result.heads),
        "instead": next((on for on, group in away.items() if found.evidence.of_group(group)), None),
        "figures": [_head(found, head) for head in heads],
        "reached": reached,
        "by": [(on, [name(*head) for head in there]) for on, there in by.items()],
        "followed": [_head(found, head) for head in first or by.get(DependsOn.POSITION, [])[:_FOLLOWED]],
        # what why says
        "why": _why(result),
        "whys": len(result.whys),
        "circuits": len(result.circuits),
        # what compose says
        "confirmed": [_read(each) for each in result.reads if each.confirmed],
        "unconfirmed": [_read(each) for each in result.reads if not each.confirmed],
        "paths": [_along(made) for made in result.paths],
        # what replacing says
        "needed": _needed(result),
        "replacement": result.replaced and result.replaced.replacement,
        "answers": result.replaced is not None and bool(result.replaced.answer),
    }


def _head(found: Finding, head: Head) -> dict[str, object]:
    place, went = place_of(found, head), found.followed
    return {
        "name": name(*head),
        "own": float(found.weights[place]),
        "mean": float(found.controls.mean[place]),
        "went": None if went is None else float(went[place]),
    }


def _named(result: Explanation) -> tuple[list[Head], int | None]:
    """Whose figures are told, the clearest first, and in how many controls some head does as much as that."""
    found, out = result.finding, result.standing_out
    if not found.ranking:
        return [], None
    if not result.heads or found.evidence.few:
        most = found.by_weight[0]
        return [(found.layers[most[0]], found.heads[most[1]])], None
    clearest = max(result.heads, key=lambda each: float(found.evidence.excess[place_of(found, each)]))
    heads = list(out[:_NAMED]) or [clearest]
    return heads, found.evidence.as_far(place_of(found, heads[0]))


def _why(result: Explanation) -> dict[str, object] | None:
    told = result.told_of
    if told is None:
        return None
    say = why_words.said(told)
    says, *more = say.lines(told.case)
    return {
        "head": name(told.layer, told.head),
        "says": says,
        "more": " ".join(more),
        "reasons": say("reasons_named") if any(told.reasons.values()) else "",
    }


def _read(each: Read) -> dict[str, object]:
    removed = each.part and each.part.removed
    return {
        "name": name(*each.pair.early),
        "through": each.pair.through.plural,
        "side": each.side,
        "score": each.pair.score,
        "chance": each.pair.chance,
        "limit": each.pair.limit,
        "left": removed and removed.weight,
    }


def _along(made: Ablation) -> dict[str, object]:
    one, path = made.heads[0], made.path
    assert path is not None, "it was let along a path"
    first, count = path.receivers[0], len(path.receivers)
    return {
        "name": name(one.layer, one.head),
        "inputs": "queries" if first.inputs == "q" else "keys",
        "reader": name(first.layer, first.head) if count == 1 else "",
        "readers": count,
        "before": one.before,
        "after": one.after,
        "whole": one.whole or 0.0,
    }


def _needed(result: Explanation) -> dict[str, object] | None:
    made = result.replaced
    if made is None or (lost := made.of(result.key)) is None:
        return None
    others = made.others(result.key)
    return {
        "answer": f"“{settled(fit(printable(made.answer), _LONGEST))}”" if made.answer else "",
        "need": result.need,
        "change": lost.change,
        "before": made.probability,
        "after": min(1.0, made.probability * math.exp(-lost.change)) if made.answer else None,
        "others": len(others),
        "more": made.as_much(result.key),
        "first": fact_of(result, others[0]) if others else None,
    }
