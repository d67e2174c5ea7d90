"""The verdict of an explanation in words, and the phrases that its sentences share."""

import math
from collections.abc import Iterable

from attnscope.printable import printable
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, likely, weight
from attnscope.render.sheet.said import in_sentence, name
from attnscope.render.sheets import finding_words
from attnscope.results import Explanation, Finding, Why
from attnscope.results.claims.explanation import Case, Head, Lost, Need, Replaced
from attnscope.results.claims.finding import Case as Found
from attnscope.results.claims.ranking import DependsOn, Group, much
from attnscope.results.claims.why import Part, Side

NAMED, LONGEST = 3, 30  # heads that a sentence names; cells of an answer
LEGEND = (
    "a head is asked further where it gives the key much more than even attention (twice, or halfway from it "
    "to 1 where that is less) and the place alone does not explain it",
    "a part is a reason where it brings half of the score, half of the weight is gone without it, and no "
    "control moves the score nearly as much",
)


def query(result: Explanation) -> str:
    return in_sentence(result.query_tokens, result.query)


def key(result: Explanation) -> str:
    return in_sentence(result.key_tokens, result.key)


def listed(names: Iterable[str], most: int = NAMED) -> str:
    """`L0 H7`, `L0 H7 and L0 H1`, `L0 H7, L0 H1, L1 H6 and 2 more`."""
    every = list(names)
    if len(every) > most + 1:
        every = [*every[:most], f"{len(every) - most} more"]
    return " and ".join([", ".join(every[:-1]), every[-1]] if every[1:] else every)


def heads_named(heads: Iterable[Head]) -> str:
    return listed(name(*head) for head in heads)


def place_of(found: Finding, head: Head) -> tuple[int, int]:
    """Its row and column."""
    return found.layers.index(head[0]), found.heads.index(head[1])


def depends(found: Finding, place: tuple[int, int]) -> str:
    """With what the weight stays in the controls: `word`, `context` or `position`; empty for nothing."""
    on = found.evidence.depends_on(place)
    return "" if on is None else on.value


def drawn_by(found: Finding) -> dict[DependsOn, list[Head]]:
    """The heads that give the key much more than even attention, by what draws them to it."""
    groups, even = dict[DependsOn, list[Head]](), found.even_attention
    assert even is not None, "a pair has keys"
    for place in found.ranking:
        on = found.evidence.depends_on(place)
        if on not in (None, DependsOn.KEY) and found.weights[place] >= much(even[place]):
            groups.setdefault(on, []).append((found.layers[place[0]], found.heads[place[1]]))
    return groups


def controls(result: Explanation) -> str:
    """`100 control texts`."""
    return finding_words.control_texts(result.finding, result.finding.controls.count)


def own(result: Explanation, head: Head) -> str:
    """`.98 here, .08 in control texts`: its weight, and the mean of its controls."""
    found, place = result.finding, place_of(result.finding, head)
    others = f"control {found.controls.of.value}s"
    mean = weight(float(found.controls.mean[place]))
    return f"{weight(float(found.weights[place]))} here, {mean} in {others}"


def many_look(count: int, of: int) -> str:
    if of == 1:
        return "The one head that was asked looks"
    return f"One of {of} heads looks" if count == 1 else f"{count} of {of} heads look"


def left(part: Part) -> str:
    """The weight that is left without a part."""
    assert part.removed is not None, "it was taken away"
    return weight(part.removed.weight)


def quoted(answer: str) -> str:
    return f"“{settled(fit(printable(answer), LONGEST))}”"


def chances(made: Replaced, lost: Lost) -> str:
    """`99.8 % → 87.8 %`."""
    after = min(1.0, made.probability * math.exp(-lost.change))
    return f"{likely(made.probability)} → {likely(after)}"


def answer(result: Explanation) -> str:
    """What can be said and what limits it, and whether the answer needs the word."""
    said = {Case.CIRCUIT: _circuit, Case.SHOWN: _shown, Case.NONE: _none}[result.case](result)
    return " ".join(each for each in (said, _of_answer(result)) if each)


def _circuit(result: Explanation) -> str:
    told = result.told_of
    assert told is not None, "one has reasons"
    at_query, at_key = (_head_reason(told, side) for side in (Side.QUERY, Side.KEY))
    limit = "" if result.standing_out else f"; by {controls(result)} alone its looking there could be chance"
    brought = f"{_brought(told, at_query, query(result))} and {_brought(told, at_key, key(result))}"
    return (
        f"{name(told.layer, told.head)} looks from {query(result)} at {key(result)} because of two earlier "
        f"heads, {brought}: without the first its weight falls from {weight(told.weight)} to "
        f"{left(at_query)}, without the second to {left(at_key)}{limit}."
    )


def _head_reason(told: Why, side: Side) -> Part:
    return next(part for part in told.reasons_of(side) if part.head is not None)


def _brought(told: Why, part: Part, place: str) -> str:
    if part.source is None:
        return f"{part.name} (at {place})"
    return f"{part.name} (at {place} it reads {in_sentence(told.key_tokens, part.source)})"


def _shown(result: Explanation) -> str:
    out = result.standing_out
    looks = many_look(len(out), len(result.finding.places))
    told = f"{looks} from {query(result)} at {key(result)} far more than in {controls(result)}, "
    told += f"{name(*out[0])} most ({own(result, out[0])})"
    why = result.told_of
    if why is None:
        return f"{told}."
    if any(map(why.reasons_of, Side)):
        return f"{told}; {name(why.layer, why.head)} does so because of {because(result, why)}."
    apart = f"of {counted(len(result.whys), 'head')} taken apart none does so"
    if len(result.whys) == 1:
        apart = f"{name(why.layer, why.head)} does not do so"
    return f"{told}; {apart} because of one earlier part alone."


def because(result: Explanation, told: Why) -> str:
    """`L0 H2 at “box” and L0 H0 at “dog”`: the reasons, each at its end."""
    ends = {Side.QUERY: query(result), Side.KEY: key(result)}
    found = {side: listed(part.name for part in told.reasons_of(side)) for side in Side}
    return " and ".join(f"{parts} at {ends[side]}" for side, parts in found.items() if parts)


def _none(result: Explanation) -> str:
    found, ends = result.finding, f"from {query(result)} at {key(result)}"
    if not result.heads:
        if found.evidence.of_group(Group.POSITION):
            return (
                f"Heads look {ends}, but by the place: they do so whatever {found.controls.of.part} is there."
            )
        if found.evidence.of_group(Group.KEY):
            return (
                f"Heads look {ends}, but {finding_words.said(found)('others')} give it half as much or more."
            )
        if not found.ranking:
            return f"No head has a number {ends}."
        return f"No head looks {ends} more than a little: none gives it much more than even attention."
    count = len(result.heads)
    looks = f"{'One head looks' if count == 1 else f'{count} heads look'} {ends}"
    if found.case is Found.FEW_CONTROLS:
        few = f"{controls(result)} {'is' if found.controls.count == 1 else 'are'} too few"
        return f"{looks}, but {few} to tell that from chance."
    nearest, reached = clearest(result)
    return (
        f"{looks}, but that may be chance: {name(*nearest)} does so most clearly, and in {reached} of "
        f"{controls(result)} some head looks there as clearly."
    )


def clearest(result: Explanation) -> tuple[Head, int]:
    """The head that stands clearest of its own controls, and in how many of these some head does as much."""
    found = result.finding
    head = max(result.heads, key=lambda each: float(found.evidence.excess[place_of(found, each)]))
    return head, found.evidence.as_far(place_of(found, head))


def _of_answer(result: Explanation) -> str:
    made = result.replaced
    if made is None or not made.answer or (lost := made.of(result.key)) is None:
        return ""
    beside = "" if result.need in (Need.HARDLY, Need.GAINS) else others_cost(result, made)
    return f"{needs(result, made)} ({chances(made, lost)}{beside})."


def needs(result: Explanation, made: Replaced) -> str:
    """`The answer “it” is less likely without “door”`."""
    has = {
        Need.GAINS: "is likelier without",
        Need.HARDLY: "hardly depends on",
        Need.NEEDS: "needs",
        Need.LOSES: "is less likely without",
    }
    assert result.need is not None, "it was replaced"
    return f"The answer {quoted(made.answer)} {has[result.need]} {key(result)}"


def others_cost(result: Explanation, made: Replaced) -> str:
    """`, and none of 7 others costs as much`."""
    more, count = made.as_much(result.key), len(made.others(result.key))
    if count < 2:
        return f", and the other one costs {'as much' if more else 'less'}" if count else ""
    return f", and {more or 'none'} of {counted(count, 'other')} {'costs' if more < 2 else 'cost'} as much"


def control(result: Explanation) -> str:
    """What the heads, what is taken away of them, and the parts of a score are held against."""
    told = finding_words.said(result.finding)("control")
    return f"{told}; of heads taken away and of parts of a score the others of their layers"


def part_name(result: Explanation, part: Lost) -> str:
    """`“door”`; of several replaced at once the first, and how many."""
    first = in_sentence(result.key_tokens, part.positions[0])
    return first if len(part.positions) == 1 else f"{first} and {len(part.positions) - 1} beside it"


def loses(made: Replaced) -> str:
    return "answer loses (nats)" if made.answer else "query turns (1 less the cosine)"
