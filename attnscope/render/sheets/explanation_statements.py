"""The sentences of an explanation, one for each question, with figures and the command that shows more."""

from collections.abc import Iterator

from attnscope.printable import word
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, likely, number, percent, significant, weight
from attnscope.render.kit.words.command import asking, asking_of_model, finding, label
from attnscope.render.sheet.drawings import Statement
from attnscope.render.sheet.said import name
from attnscope.render.sheets import explanation_words as words
from attnscope.render.sheets import finding_words
from attnscope.render.sheets import why as why_words
from attnscope.render.sheets.ablation_labels import asked_again
from attnscope.render.sheets.ablation_measured import pair, quoted_answer
from attnscope.render.sheets.explanation_words import key, left, query
from attnscope.results import Ablation, Explanation, Kind, Why
from attnscope.results.claims.effect import Effect, Group, HeadEffect
from attnscope.results.claims.explanation import Asked, Head, Lost, Need, Read, Replaced
from attnscope.results.claims.finding import Case as Found
from attnscope.results.claims.intervention import LITTLE
from attnscope.results.claims.ranking import DependsOn
from attnscope.results.claims.ranking import Group as Evidence
from attnscope.results.claims.why import MUCH, Part, Side
from attnscope.results.claims.why import Case as WhyCase

BY_WHAT = "by what: the word, the place or the context?"
NOT_ASKED = "what could not be asked?"
_FOLLOWED = 2  # heads of a kind of which the figures are told


def statements(result: Explanation) -> Iterator[Statement]:
    """In the order in which they were asked."""
    yield _look(result)
    if groups := words.drawn_by(result.finding):
        yield _by_what(result, groups)
    heads = ",".join(f"L{layer}H{head}" for layer, head in result.heads)
    if result.taken is not None:
        yield _without(result, result.taken, Asked.MATTER, "--head", heads)
    if result.cut is not None:
        ends = f"{result.query_tokens.labels[result.query]}->{result.key_tokens.labels[result.key]}"
        yield _without(result, result.cut, Asked.LINK, "--head", heads, "--link", word(ends))
    if (told := result.told_of) is not None:
        yield _why(result, told)
        if result.composition is not None:
            yield _reads(result, told)
    if result.replaced is not None:
        yield _of_word(result, result.replaced)
    if result.unasked:
        yield _unasked(result)


def _look(result: Explanation) -> Statement:
    found, out = result.finding, result.standing_out
    command = finding(result, result.query, result.key)
    if not out:
        return Statement(Asked.LOOK, _nobody(result), _nearest(result), command)
    looks = words.many_look(len(out), len(found.places))
    others = f"texts with the {finding_words.PLURAL[found.controls.of]} in other orders"
    told = (
        f"{looks} from {query(result)} at {key(result)} far more than in {others}: {words.heads_named(out)}."
    )
    figures = "; ".join(f"{name(*head)} {words.own(result, head)}" for head in out[: words.NAMED])
    reached = found.evidence.as_far(words.place_of(found, out[0]))
    clear = f"in {reached} of {words.controls(result)} some head stands as clear as the first"
    return Statement(Asked.LOOK, told, f"{figures}; {clear}", command)


def _nobody(result: Explanation) -> str:
    if result.heads:
        gives = "One head gives" if len(result.heads) == 1 else f"{len(result.heads)} heads give"
        return (
            f"{gives} {key(result)} much more than even attention, but none so clearly that it stands out of "
            f"{words.controls(result)} of the same shape."
        )
    if result.finding.evidence.of_group(Evidence.POSITION):
        return f"Heads look there, but as much in {words.controls(result)}: by the place alone."
    if result.finding.evidence.of_group(Evidence.KEY):
        others = finding_words.said(result.finding)("others")
        return f"Heads look there, but {others} give it half as much or more: the key draws it."
    return f"None: no head gives {key(result)} much more than even attention."


def _nearest(result: Explanation) -> str:
    found = result.finding
    if not found.ranking:
        return ""
    if not result.heads or found.case is Found.FEW_CONTROLS:
        most = max(found.ranking, key=lambda place: float(found.weights[place]))
        head = found.layers[most[0]], found.heads[most[1]]
        even = (
            "" if found.even_attention is None else f"; even attention {weight(found.even_attention[most])}"
        )
        return f"the most: {name(*head)} {words.own(result, head)}{even}"
    head, reached = words.clearest(result)
    clear = f"in {reached} of {words.controls(result)} some head stands as clear"
    return f"clearest: {name(*head)} {words.own(result, head)}; {clear}"


def _by_what(result: Explanation, groups: dict[DependsOn, list[Head]]) -> Statement:
    of = result.finding.controls.of
    does = {
        DependsOn.WORD: (f"follows {key(result)}", f"follow {key(result)}"),
        DependsOn.CONTEXT: (
            "looks there much less (it needs this context)",
            "look there much less (they need this context)",
        ),
        DependsOn.POSITION: (
            f"keeps looking at the same place, whatever {of.part} is there",
            f"keep looking at the same place, whatever {of.part} is there",
        ),
    }
    told = "; ".join(
        f"{words.heads_named(groups[on])} {said[len(groups[on]) > 1]}"
        for on, said in does.items()
        if on in groups
    )
    first = [head for on in (DependsOn.WORD, DependsOn.CONTEXT) for head in groups.get(on, [])[:_FOLLOWED]]
    return Statement(
        BY_WHAT,
        f"Where the {finding_words.PLURAL[of]} change places, {told}.",
        "; ".join(_followed(result, head) for head in first or groups[DependsOn.POSITION][:_FOLLOWED]),
        f"{finding(result, result.query, result.key)} -v",
    )


def _followed(result: Explanation, head: Head) -> str:
    found, place = result.finding, words.place_of(result.finding, head)
    told = f"{name(*head)} {weight(float(found.weights[place]))}, in control {found.controls.of.value}s "
    told += f"{weight(float(found.controls.mean[place]))} at the place"
    went = found.followed
    return told if went is None else f"{told} and {weight(float(went[place]))} where {key(result)} went"


def _without(result: Explanation, made: Ablation, question: Asked, *options: str) -> Statement:
    beside: Group | HeadEffect = made.heads[0] if made.group is None else made.group
    effect: Effect = made.heads[0] if made.group is None else made.group.effect
    these = name(*result.heads[0]) if len(result.heads) == 1 else f"these {len(result.heads)} heads"
    done = f"Without {these}" if question is Asked.MATTER else f"With only this link cut in {these}"
    what = f"the answer {quoted_answer(made, words.LONGEST)}"
    if abs(effect.change) <= made.floor.rounding:
        told = f"{done} {what} changes by no more than rounding does"
    elif abs(effect.change) < LITTLE:
        told = f"{done} {what} hardly changes{_rank(beside)}"
    else:
        falls = "falls" if effect.change < 0 else "rises"
        told = f"{done} {what} {falls} from {likely(effect.before)} to {likely(effect.after)}{_rank(beside)}"
    command = asking(result, "ablate", *options, *asked_again(made))
    return Statement(question, f"{told}.", _figures(made, effect, beside), command)


def _rank(beside: Group | HeadEffect) -> str:
    if not beside.controls:
        return ""
    others = "group of as many heads" if isinstance(beside, Group) else "head of its layer"
    others = (
        others.replace("group", "groups").replace("head of", "heads of") if beside.controls > 1 else others
    )
    more = beside.controls - beside.below
    return f"; of {beside.controls} other {others} {more or 'none'} {'does' if more < 2 else 'do'} as much"


def _figures(made: Ablation, effect: Effect, beside: Group | HeadEffect) -> str:
    told = f"{pair(made, effect)}, {number(effect.change)} nats"
    if beside.controls and beside.typical is not None:
        told += f"; the others {number(beside.typical)} in the median"
    told += f"; rounding {significant(made.floor.rounding, 1)} at most"
    if made.group is not None:
        most = max(made.heads, key=lambda each: abs(each.change))
        told += f"; of each alone most: {name(most.layer, most.head)} {number(most.change)}"
    return told


def _why(result: Explanation, told: Why) -> Statement:
    head, reasons = name(told.layer, told.head), {side: told.reasons_of(side) for side in Side}
    ends = "--from", label(told.query_tokens, told.query), "--to", label(told.key_tokens, told.key)
    command = asking(result, "why", "--layer", str(told.layer), "--head", str(told.head), *ends)
    if any(reasons.values()):
        said = f"{head} looks there because of {words.because(result, told)}: "
        said += "taking away any other of the same kind does less."
        lost = "; ".join(map(_lost, (part for its in reasons.values() for part in its[:2])))
        return Statement(Asked.WHY, said, f"weight {weight(told.weight)}; {lost}{_alike(result)}", command)
    said = f"No single earlier part is the reason why {head} looks there."
    if told.case is WhyCase.NOT_ABOVE:
        said = (
            f"The score of {head} hardly lifts {key(result)} above other keys: there is nothing to explain."
        )
    elif told.case is WhyCase.SHARE and (part := told.largest) is not None:
        said = f"No single reason: {part.name} on the {part.side} side brings "
        said += f"{percent(part.contrast / told.contrast)} of the score, but {_but(told, part)}."
    return Statement(Asked.WHY, said, f"{_least(told)}{_alike(result)}", command)


def _but(told: Why, part: Part) -> str:
    return why_words.said(told)("but", why_words.fact_of(told, part))


def _lost(part: Part) -> str:
    assert part.removed is not None, "a reason was taken away"
    most = max(map(abs, part.controls), default=0.0)
    moved = number(part.removed.total)
    return f"without {part.name} {left(part)} (score {moved}, controls up to {number(most)})"


def _alike(result: Explanation) -> str:
    if len(result.whys) < 2:
        return ""
    count = len(result.circuits) or "none"
    has = "has" if len(result.circuits) <= 1 else "have"
    return f"; of {len(result.whys)} heads taken apart {count} {has} an earlier head as a reason at both ends"


def _least(told: Why) -> str:
    tried = [part for part in told.parts if part.removed is not None]
    if not tried:
        return "only embeddings and biases come before it"
    least = min(tried, key=lambda part: part.removed.weight if part.removed else 1.0)
    return (
        f"weight {weight(told.weight)}; of {counted(len(tried), 'part')}, each taken away alone, "
        f"{least.name} on the {least.side} side leaves least: {left(least)}"
    ) + (
        ""
        if least.removed is None or least.removed.weight > MUCH * told.weight
        else f", but {_but(told, least)}"
    )


def _reads(result: Explanation, told: Why) -> Statement:
    made, head = result.composition, name(told.layer, told.head)
    assert made is not None, "asked only where there is one"
    which = "--layer", str(told.layer), "--head", str(told.head)
    command = asking_of_model("compose", made.provenance, made.kind, made.tower, *which)
    confirmed = [each for each in result.reads if each.confirmed]
    others = [each for each in result.reads if not each.confirmed]
    if confirmed:
        reads = words.listed(map(_reading, confirmed))
        said = f"By its weights {head} reads {reads}; in this text taking that away confirms it."
    elif others:
        reads = words.listed(map(_reading, others))
        said = f"By its weights {head} could read {reads}; in this text none is confirmed "
        said += "(only the largest parts of its score were taken away)."
    else:
        said = f"By the weights no earlier head writes what {head} reads more than random ones would."
    figures = "; ".join(map(_score, confirmed or others[: words.NAMED]))
    if confirmed and others:
        figures += f"; {len(others)} more by weights alone"
    figures = "; ".join([figures, *(_along(each) for each in result.paths)])
    return Statement(Asked.READ, said, figures, command)


def _along(made: Ablation) -> str:
    one, path = made.heads[0], made.path
    assert path is not None, "it was let along a path"
    by = "queries" if path.receivers[0].inputs == "q" else "keys"
    first, count = path.receivers[0], len(path.receivers)
    these = name(first.layer, first.head) if count == 1 else f"the {count} heads that look there"
    head, everywhere = name(one.layer, one.head), number(one.whole or 0.0)
    told = f"the answer without {head} in the {by} of {these}: {pair(made, one)}"
    return f"{told} (without it everywhere: {everywhere} nats)"


def _reading(each: Read) -> str:
    return f"{name(*each.pair.early)} with its {each.pair.through.plural}"


def _score(each: Read) -> str:
    told = f"{name(*each.pair.early)} by {each.side} {number(each.pair.score)} (random circuits "
    told += f"{number(each.pair.chance)}, {number(each.pair.limit)} needed)"
    if each.part is None or each.part.removed is None:
        return f"{told}, here too small a share to be taken away"
    return f"{told}, weight without it {left(each.part)}"


def _of_word(result: Explanation, made: Replaced) -> Statement:
    command, lost = _shows_words(result, made), made.of(result.key)
    if lost is None:
        said = f"{key(result)} was not replaced: it is special, or stands where the answer does."
        return Statement(Asked.WORD, said, "", command)
    others = made.others(result.key)
    more, count = made.as_much(result.key), len(others)
    most = f"; the most of {counted(count, 'other')}: {_loss(result, others[0])}" if others else ""
    if not made.answer:
        beside = (
            f"less than where {more} of {count} others are" if more else f"more than where any of {count} is"
        )
        said = f"The vector of {query(result)} turns where {key(result)} is replaced, {beside}."
        return Statement(Asked.WORD, said, f"by {number(lost.change)} (1 less the cosine){most}", command)
    gains = result.need is Need.GAINS
    said = f"{words.needs(result, made)}{'' if gains else words.others_cost(result, made)}."
    lack = f"{number(abs(lost.change))} nats {'gained' if gains else 'lost'} with {made.replacement} in "
    lack += "its place"
    if gains:
        most = f"; lost most of {counted(count, 'other')}: {_loss(result, others[0])}" if others else ""
    return Statement(Asked.WORD, said, f"{words.chances(made, lost)}, {lack}{most}", command)


def _loss(result: Explanation, part: Lost) -> str:
    return f"{number(part.change)} ({words.part_name(result, part)})"


def _shows_words(result: Explanation, made: Replaced) -> str:
    named = (
        ("--answer", word(made.answer))
        if result.taken is not None and not result.taken.answer.likeliest
        else ()
    )
    if result.kind is Kind.CROSS or made.position is None:
        ends = (
            "--from",
            label(result.query_tokens, result.query),
            "--to",
            label(result.key_tokens, result.key),
        )
        return f"{asking(result, 'explain', *ends, *named)} -v"
    return asking(result, "flow", "--from", label(result.query_tokens, made.position), *named)


def _unasked(result: Explanation) -> Statement:
    questions = dict.fromkeys(each.question.value.rstrip("?") for each in result.unasked)
    reasons = dict.fromkeys(settled(each.reason) for each in result.unasked)
    return Statement(NOT_ASKED, f"Left open: {'; '.join(questions)}.", "; ".join(reasons))
