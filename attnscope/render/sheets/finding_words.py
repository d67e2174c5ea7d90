"""The words of a ranking: what can be said of its heads, by the case that it is."""

from collections.abc import Callable

import numpy as np

from attnscope.render.kit.numbers import counted, weight
from attnscope.render.sheet.said import Place, in_sentence, name, named
from attnscope.results import Contents, Finding, Kind, Pattern
from attnscope.results.claims.finding import Case
from attnscope.results.claims.ranking import LEAST_CONTROLS, LEVEL, DependsOn, Group, much
from attnscope.tokens import Patches

_PATTERNS = {
    Pattern.PREVIOUS: "the token before",
    Pattern.NEXT: "the token after",
    Pattern.SELF: "the token itself",
    Pattern.FIRST: "the first token",
    Pattern.SAME: "the same token elsewhere",
    Pattern.INDUCTION: "what followed the same token before",
    Pattern.PUNCTUATION: "punctuation",
    Pattern.SPECIAL: "special tokens",
}
_BESIDE = {Pattern.PREVIOUS: "the patch to the left", Pattern.NEXT: "the patch to the right"}
PLURAL = {Contents.TEXT: "words", Contents.PICTURE: "patches", Contents.SOUND: "frames"}
_MOST_APART = float(np.log(2))  # nats
_ALSO = 3  # heads that are named of those that position explains


def answer(result: Finding) -> str:
    """One sentence for the case that it is, and what limits it."""
    told = " ".join(each for each in (_SAID[result.case](result), _few(result)) if each)
    return told[0].upper() + told[1:]


def pattern_words(result: Finding, pattern: Pattern) -> str:
    """The keys that are meant, as they are called of words, patches or frames."""
    tokens, words = result.key_tokens, _PATTERNS[pattern]
    if not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches):
        words = _BESIDE.get(pattern, words)
    if tokens.texts or not tokens.stretches:
        return words if pattern is Pattern.SPECIAL else words.replace("token", result.by.value)
    named = {Pattern.FIRST: "the first key", Pattern.SPECIAL: "the model's own tokens"}
    return named.get(pattern, words.replace("token", result.controls.of.part))


def control_texts(result: Finding, count: int | None = None) -> str:
    """`control texts`, `100 control pictures`."""
    of = f"control {result.controls.of.value}"
    return f"{of}s" if count is None else counted(count, of)


def _looks(result: Finding, many: bool = True) -> str:
    sought, look = result.question, "look" if many else "looks"
    if sought.pattern is not None:
        return f"{look} at {pattern_words(result, sought.pattern)}"
    query, key = sides(result)
    if result.kind is Kind.CROSS and result.query_tokens.texts:
        return f"{look} at {key} when the decoder reads {query}"
    return f"{look} from {query} at {key}"


def sides(result: Finding) -> tuple[str, str]:
    """The token that looks and the one that is looked at, with a position where it stands several times."""
    sought = result.question
    pairs = ((result.query_tokens, sought.query), (result.key_tokens, sought.key))
    query, key = ("" if at is None else in_sentence(tokens, at) for tokens, at in pairs)
    return query, key


def _numbers(result: Finding, place: Place, there: str = "there") -> str:
    own, mean = (weight(float(each[place])) for each in (result.weights, result.controls.mean))
    return f"{own} here, {mean} {there}"


def _heads(result: Finding, count: int) -> str:
    of = counted(len(result.places), "head")
    if len(result.places) == 1:
        return "the one head that was asked"
    return f"one of {of}" if count == 1 else f"{count} of {of}"


def _standing_out(result: Finding) -> str:
    out = result.evidence.of_group(Group.STANDS_OUT)
    best, of = out[0], control_texts(result)
    if result.smaller_is_better:
        like = name(*(result.question.like or (0, 0)))
        verb = "is" if len(out) == 1 else "are"
        told = (
            f"{_heads(result, len(out))} {verb} more like {like} here than in {of}: {named(result, best)}, "
        )
        return f"{told}{_apart(result, best)}. {_as_clear(result, best)}"
    told = f"{_heads(result, len(out))} {_looks(result, len(out) > 1)} far more than in {of}: "
    told += f"{named(result, best)}, {_numbers(result, best)}."
    if len(out) > 2 and len({i for i, _ in out}) == 1:
        told += f" All {len(out)} are in layer {result.layers[best[0]]}."
    told = " ".join(each for each in (told, _follows(result, best), _as_clear(result, best)) if each)
    if result.controls.of is not Contents.TEXT:
        told += " An untrained model can do this too."
    return told


def _follows(result: Finding, place: Place | None) -> str:
    if place is None or result.followed is None or result.evidence.depends_on(place) is not DependsOn.WORD:
        return ""
    _, key = sides(result)
    whole = result.controls.of.value.replace("text", "sentence")
    drawn = f"mostly the {result.controls.of.part} draws it, not the {whole}"
    got = weight(float(result.followed[place]))
    return f"Wherever {key} itself went, it got {got} from {named(result, place)}: {drawn}."


def _drawn(result: Finding) -> Place | None:
    given, even = result.followed, result.even_attention
    if given is None or even is None:
        return None
    by_word = (each for each in result.ranking if result.evidence.depends_on(each) is DependsOn.WORD)
    drawn = (each for each in by_word if given[each] >= much(float(even[each])))
    return max(drawn, key=lambda each: float(given[each]), default=None)


def _as_clear(result: Finding, best: Place) -> str:
    """In how many controls a head stands as clear of its own others: the best held against the best."""
    of, reached = result.controls, result.evidence.as_far(best)
    if not reached:
        return f"No head of any control {of.of.value} stands so clear of its own."
    return f"In {reached} of {control_texts(result, of.count)} some head stands as clear of its own."


def _apart(result: Finding, place: Place) -> str:
    ends = f"0 = the same, {weight(_MOST_APART)} = nothing in common"
    own, mean = (weight(float(each[place])) for each in (result.weights, result.controls.mean))
    return f"{own} apart here, {mean} there ({ends})"


def _cannot_tell(result: Finding) -> str:
    nearest = _nearest(result)
    if result.smaller_is_better:
        like = name(*(result.question.like or (0, 0)))
        told = f"no head is more like {like} here than in {control_texts(result)}; nearest: "
        return f"{told}{named(result, nearest)}, {_apart(result, nearest)}."
    which = "which head" if result.question.pattern is None else "whether a head"
    told = f"this {result.controls.of.value} cannot tell {which} {_looks(result, False)}: "
    reached, count = result.evidence.as_far(nearest), control_texts(result, result.controls.count)
    own, mean = (weight(float(each[nearest])) for each in (result.weights, result.controls.mean))
    told += f"{named(result, nearest)} comes nearest ({own} here, {mean} in {control_texts(result)}), "
    told += f"but in {reached} of {count} some head stands as clear of its own."
    return " ".join(each for each in (told, _follows(result, _drawn(result))) if each)


def _nearest(result: Finding) -> Place:
    if result.smaller_is_better:
        return min(result.ranking, key=lambda place: float(result.weights[place]))
    explained = {place for of in (Group.POSITION, Group.KEY) for place in result.evidence.of_group(of)}
    others = [place for place in result.ranking if place not in explained] or list(result.ranking)
    return max(others, key=lambda place: float(result.evidence.excess[place]))


def _few_controls(result: Finding) -> str:
    count, of = result.controls.count, control_texts(result)
    if count < result.controls.wanted:
        why = f"its {PLURAL[result.controls.of]} stand in no more than {counted(count, 'other order')}"
        told = f"this {result.controls.of.value} is too short to tell: {why}, and {LEAST_CONTROLS} are needed"
    else:
        told = f"{counted(count, of.removesuffix('s'))} {'is' if count == 1 else 'are'} too few to tell"
        told += f": {LEAST_CONTROLS} are needed"
    return f"{told}. The most is {_numbers(result, result.ranking[0])} ({named(result, result.ranking[0])})."


def _position_only(result: Finding) -> str:
    first = result.evidence.of_group(Group.POSITION)[0]
    own, mean = (weight(float(each[first])) for each in (result.weights, result.evidence.of_place))
    part = result.controls.of.part
    if result.question.query is None:
        gives = f"{named(result, first)}, {_numbers(result, first)}"
        return f"heads {_looks(result)} because of where it stands: {gives}."
    return (
        f"heads {_looks(result)} because of where it stands: {named(result, first)} gives it {own} here and "
        f"{mean} whatever {part} is there."
    )


def asking(result: Finding) -> str:
    """Those that look, several of them: `tokens`, `words`, `patches`."""
    sensed = result.query_tokens.stretches and not result.query_tokens.texts
    return PLURAL[result.controls.of] if sensed else f"{result.by.value}s"


def others(result: Finding) -> str:
    """The others of these that look there too: `other tokens`, of a long text a few, `14 other tokens`."""
    return f"{result.sampled or ''} other {asking(result)}".strip()


def _key_only(result: Finding) -> str:
    first = result.evidence.of_group(Group.KEY)[0]
    assert result.elsewhere is not None, "by which they are told"
    own, given = (weight(float(each[first])) for each in (result.weights, result.elsewhere))
    gives = f"{named(result, first)} gives it {own}, and {given} from {others(result)} on average"
    return f"heads {_looks(result)}, but from elsewhere too: {gives}."


def _by_weight(result: Finding) -> list[Place]:
    return sorted(result.ranking, key=lambda place: (-float(result.weights[place]), place))


def first_named(result: Finding) -> Place:
    """The head that the first line names, which need not be the first of the table."""
    if result.case in (Case.NOTHING, Case.POSITION_SOUGHT):
        return _by_weight(result)[0]
    if result.case is Case.POSITION_ONLY:
        return result.evidence.of_group(Group.POSITION)[0]
    if result.case is Case.KEY_ONLY:
        return result.evidence.of_group(Group.KEY)[0]
    return _nearest(result) if result.case is Case.CANNOT_TELL else result.ranking[0]


def places_named(result: Finding) -> set[Place]:
    """The heads that the answer names: each is a row that is shown."""
    if not result.ranking:
        return set()
    if result.case is Case.POSITION_SOUGHT:
        return {*_by_weight(result)[:_ALSO]}
    drawn = _drawn(result) if result.case is Case.CANNOT_TELL else None
    return {first_named(result), *([] if drawn is None else [drawn])}


def _nothing(result: Finding) -> str:
    most = _by_weight(result)[0]
    even = (
        ""
        if result.even_attention is None
        else f"; even attention: {weight(float(result.even_attention[most]))}"
    )
    own = weight(float(result.weights[most]))
    return f"no head {_looks(result, False)}: the most is {own} ({named(result, most)}{even})."


def _position_sought(result: Finding) -> str:
    best, *more = _by_weight(result)[:_ALSO]
    whatever = f"whatever the {PLURAL[result.controls.of]}"
    own, mean = (weight(float(each[best])) for each in (result.weights, result.controls.mean))
    beside = f"{own} here, {mean} in {control_texts(result)}"
    if result.even_attention is not None and result.weights[best] < 2 * result.even_attention[best]:
        return _nothing(result)
    if result.evidence.depends_on(best) is not DependsOn.POSITION:
        return f"{named(result, best)} {_looks(result, False)} most: {beside}."
    told = f"{named(result, best)} {_looks(result, False)}, {whatever}: {beside}."
    also = [
        f"{named(result, place)} with {weight(float(result.weights[place]))} "
        f"({weight(float(result.controls.mean[place]))})"
        for place in more
        if result.evidence.depends_on(place) is DependsOn.POSITION
    ]
    told += f" So do {' and '.join(also)}." if len(also) > 1 else f" So does {also[0]}." if also else ""
    out = result.evidence.of_group(Group.STANDS_OUT)
    alone = (
        "No head does it"
        if not out
        else f"{counted(len(out), 'head')} {'does' if len(out) == 1 else 'do'} it"
    )
    return f"{told} {alone} for these {PLURAL[result.controls.of]} alone."


def _few(result: Finding) -> str:
    count = result.controls.count
    if not LEAST_CONTROLS <= count < result.controls.wanted or result.case is Case.UNRANKED:
        return ""
    return f"Only {control_texts(result, count)}: these {PLURAL[result.controls.of]} stand in no more orders."


_SAID: dict[Case, Callable[[Finding], str]] = {
    Case.UNRANKED: lambda result: f"none of {counted(len(result.places), 'head')} has a number.",
    Case.SEVERAL: _standing_out,
    Case.ONE: _standing_out,
    Case.CANNOT_TELL: _cannot_tell,
    Case.POSITION_ONLY: _position_only,
    Case.KEY_ONLY: _key_only,
    Case.NOTHING: _nothing,
    Case.POSITION_SOUGHT: _position_sought,
    Case.FEW_CONTROLS: _few_controls,
}


def group_words(result: Finding, group: Group, shown: int) -> str:
    """The heading above the heads of a group, of which so many are `shown`."""
    count = len(result.evidence.of_group(group))
    of = f"{count}, {shown} shown" if shown < count else f"{count}"
    if group is Group.STANDS_OUT:
        return f"{group.value} ({of})" if shown < count else group.value
    if group is Group.ABOVE_ITS_OWN:
        lucky = LEVEL * len(result.places)
        by_luck = "1" if lucky <= 1 else f"{int(lucky)} or {int(lucky) + 1}"
        many = counted(len(result.places), "head")
        return f"{group.value} ({of}; of {many} about {by_luck} are so by luck)"
    few = group is Group.NEITHER and result.controls.count < LEAST_CONTROLS
    return f"{'too few controls to tell' if few else group.value} ({of})"


def control(result: Finding) -> str:
    """What is changed in the controls, and what stays."""
    _, _, stays = result.controls.how.partition("; ")
    whose = "the source's" if result.kind is Kind.CROSS and result.query_tokens.texts else "your"
    of = {Contents.TEXT: f"{whose} words", Contents.PICTURE: "its patches", Contents.SOUND: "its frames"}
    beside = "what the decoder reads stays" if whose == "the source's" else stays
    sought = result.question
    how_many = "" if sought.query_span or sought.key_span or result.by.is_long else "two "
    at = f"the same {how_many}positions are read" if sought.query is not None else ""
    if at and result.by.is_long:
        at += f", summed over those of the one {result.by} and averaged over those of the other"
    return "; ".join(each for each in (f"{of[result.controls.of]} shuffled", beside, at) if each)
