"""What the words of a ranking are filled with. The words: find.jinja."""

import numpy as np

from attnscope.errors import listed
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.sheet.said import Place, at, in_sentence, name, named
from attnscope.render.words import Said
from attnscope.results import Contents, Kind
from attnscope.results.claims.ranking import LEAST_CONTROLS, LEVEL, SINK, DependsOn, Group, much
from attnscope.tokens import Patches
from attnscope.verbs.find.result import Case, Finding

PLURAL = {Contents.TEXT: "words", Contents.PICTURE: "patches", Contents.SOUND: "frames"}
_MOST_APART = float(np.log(2))  # nats
_ALSO = 3  # heads that are named of those that position explains


def said(result: Finding) -> Said:
    """The words of `find` about this result."""
    sought, controls, evidence = result.question, result.controls, result.evidence
    best, drawn = first_named(result), _drawn(result)
    out = evidence.of_group(Group.STANDS_OUT)
    query, key = sides(result)
    tokens = result.key_tokens
    plain = bool(tokens.texts) or not tokens.stretches
    lucky = LEVEL * len(result.places)
    how, _, stays = controls.how.partition("; ")
    long = np.flatnonzero(result.key_lengths >= SINK) if result.key_lengths is not None else np.array([], int)
    even = result.even_attention
    evens = None if even is None or np.isnan(even).all() else even
    low, middle, high = np.quantile(controls.best, (0.05, 0.5, 0.95)) if controls.count else (None,) * 3
    also = [
        f"{named(result, place)} ({weight(float(result.weights[place]))} here, "
        f"{weight(float(controls.mean[place]))} then)"
        for place in result.by_weight[1:_ALSO]
        if evidence.depends_on(place) is DependsOn.POSITION
    ]

    def of_best(values: np.ndarray | None) -> float | None:
        return None if values is None or best is None else float(values[best])

    facts = {
        # what was sought
        "query": query,
        "key": key,
        "from": "" if sought.query is None else at(result.query_tokens, sought.query, sought.query_span),
        "to": "" if sought.key is None else at(tokens, sought.key, sought.key_span),
        "pattern": sought.pattern and sought.pattern.value,
        "like": sought.like and name(*sought.like),
        "pair": sought.query is not None,
        "two": not (sought.query_span or sought.key_span or result.by.is_long),
        "joined": result.by.is_long,
        "asked": len(result.places),
        "decoder": result.kind is Kind.CROSS and bool(result.query_tokens.texts),
        # what is read
        "text": plain,
        "patches": not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches),
        "unit": result.by.value if plain else controls.of.part,
        "asking": asking(result),
        "special_key": sought.key is not None and tokens.items[sought.key].special,
        "sink": None if result.key_lengths is None or not long.size else float(result.key_lengths.max()),
        "sink_layers": listed([result.layers[i] for i in long]) if long.size else "",
        "sink_layer_count": len(long),
        # the controls
        "of": controls.of.value,
        "part": controls.of.part,
        "parts": PLURAL[controls.of],
        "context": context_words(controls.of),
        "controls": controls.count,
        "fewer": LEAST_CONTROLS <= controls.count < controls.wanted,
        "least": LEAST_CONTROLS,
        "too_few": evidence.few,
        "allowed": int(LEVEL * (controls.count + 1) + 1e-9) - 1,
        "lucky": "1" if lucky <= 1 else f"{int(lucky)}-{int(lucky) + 1}",
        "how": how,
        "stays": stays,
        "best_low": low,
        "best_middle": middle,
        "best_high": high,
        # what came out
        "best": None if best is None else named(result, best),
        "own": of_best(result.weights),
        "mean": of_best(controls.mean),
        "stayed": of_best(controls.mean if sought.query is None else evidence.of_place),
        "elsewhere": of_best(result.elsewhere),
        "even": of_best(even),
        "even_least": None if evens is None else float(np.nanmin(evens)),
        "even_most": None if evens is None else float(np.nanmax(evens)),
        "reached": 0 if best is None else evidence.as_far(best),
        "out": len(out),
        "also": also,
        "drawn": None if drawn is None else named(result, drawn),
        "followed": None if drawn is None or result.followed is None else float(result.followed[drawn]),
        "can_follow": result.followed is not None,
        "explained": any(evidence.depends_on(place) for place in result.ranking),
        "most_apart": _MOST_APART,
    }
    return Said("find", result, facts)


def answer(result: Finding) -> str:
    return said(result)(result.case)


def sides(result: Finding) -> tuple[str, str]:
    """The token that looks and the one that is looked at, with a position where it stands several times."""
    sought = result.question
    pairs = ((result.query_tokens, sought.query), (result.key_tokens, sought.key))
    query, key = ("" if at is None else in_sentence(tokens, at) for tokens, at in pairs)
    return query, key


def asking(result: Finding) -> str:
    """Those that look, several of them: `tokens`, `words`, `patches`."""
    sensed = result.query_tokens.stretches and not result.query_tokens.texts
    return PLURAL[result.controls.of] if sensed else f"{result.by.value}s"


def first_named(result: Finding) -> Place | None:
    """The head that the first line names, which need not be the first of the table."""
    if not result.ranking:
        return None
    if result.case in (Case.NOTHING, Case.POSITION_SOUGHT, Case.POSITION_LOST):
        return result.by_weight[0]
    if result.case is Case.POSITION_ONLY:
        return result.evidence.of_group(Group.POSITION)[0]
    if result.case is Case.KEY_ONLY:
        return result.evidence.of_group(Group.KEY)[0]
    return _nearest(result) if result.case is Case.CANNOT_TELL else result.ranking[0]


def places_named(result: Finding) -> set[Place]:
    """The heads that the answer names: each is a row that is shown."""
    more = result.by_weight[:_ALSO] if result.case is Case.POSITION_SOUGHT else ()
    return {each for each in (first_named(result), _drawn(result), *more) if each is not None}


def _nearest(result: Finding) -> Place:
    """The head that comes nearest to standing out; of likeness the one that is most alike."""
    if result.smaller_is_better:
        return min(result.ranking, key=lambda place: float(result.weights[place]))
    explained = {place for of in (Group.POSITION, Group.KEY) for place in result.evidence.of_group(of)}
    others = [place for place in result.ranking if place not in explained] or list(result.ranking)
    return max(others, key=lambda place: float(result.evidence.excess[place]))


def _drawn(result: Finding) -> Place | None:
    """The head of which it is said that its weight goes along with the key."""
    by_word = [each for each in result.ranking if result.evidence.depends_on(each) is DependsOn.WORD]
    if result.case in (Case.ONE, Case.SEVERAL):
        return result.ranking[0] if result.ranking[0] in by_word else None
    given, even = result.followed, result.even_attention
    if result.case is not Case.CANNOT_TELL or given is None or even is None:
        return None
    drawn = (each for each in by_word if given[each] >= much(float(even[each])))
    return max(drawn, key=lambda each: float(given[each]), default=None)


def context_words(of: Contents) -> str:
    """What a head depends on whose weight is lost when words, patches or frames are shuffled."""
    return "context" if of is Contents.TEXT else of.value


def control_texts(result: Finding, count: int | None = None) -> str:
    """`shuffled texts`, `100 shuffled pictures`."""
    of = f"shuffled {result.controls.of.value}"
    return f"{of}s" if count is None else counted(count, of)


def group_words(result: Finding, group: Group, shown: int) -> str:
    """The heading above the heads of a group, of which so many are `shown`."""
    names = {Group.STANDS_OUT: "stands_out", Group.ABOVE_ITS_OWN: "above_its_own", Group.POSITION: "position"}
    names |= {Group.KEY: "key_of_all", Group.NEITHER: "neither"}
    return said(result)(names[group], shown, len(result.evidence.of_group(group)))
