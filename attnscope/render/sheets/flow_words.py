"""What the words of a flow are filled with. The words: render/words/flow.jinja."""

import math
from collections.abc import Iterator

from attnscope.printable import printable
from attnscope.render.kit.labels import settled
from attnscope.render.kit.words.certificate import verdict_words
from attnscope.render.sheet import said as sheet_said
from attnscope.render.sheet.said import at, in_sentence, proof
from attnscope.render.words import Said
from attnscope.results import Flow, Kind, Verdict
from attnscope.results.claims.flow import DISTANCE, GRADIENT, INTEGRATED, Ablated
from attnscope.spelling import told
from attnscope.tokens import Patches

_FEW = 10  # tokens, of which a rank correlation says little
_FIRST = "attention"
SIGNED = frozenset({GRADIENT, INTEGRATED})  # numbers of their own, not shares


def said(result: Flow) -> Said:
    """The words of `flow` about this result."""
    return Said("flow", _facts(result))


def _facts(result: Flow) -> dict[str, object]:
    made = result.ablated
    best = None if made is None else made.best
    trust = () if made is None else made.trust
    parts = [] if made is None else [_part(result, made, place) for place in made.ranking[:2]]
    near = next((each.correlation for each in trust if each.method == DISTANCE), math.nan)
    summed = (each for each in result.attributed if each.method == INTEGRATED and each.values is not None)
    absent = dict[str, list[str]]()
    for each in result.attributed:
        if each.absent:
            absent.setdefault(each.absent, []).append(each.method)
    place = "" if result.query is None else at(result.tokens, result.query)
    span = result.query_span
    return {
        # what was asked
        "at": settled(told(result.tokens, span)) if span else place,
        "query": "" if result.query is None else in_sentence(result.tokens, result.query),
        "position": result.query,
        "span": span if len(span) > 1 else (),
        "how": "" if result.pooled is None else result.pooled.how,
        "answer": "" if made is None else settled(printable(made.answer)),
        "against": "" if made is None else settled(printable(made.against)),
        "after_it": result.kind is Kind.DECODER and made is not None and not made.tag,
        "of_span": made is not None and made.of_span,
        "answers_at": result.answers_at,
        # what is read
        "unit": unit(result),
        "joins": result.by.joins,
        "layers": len(result.layers),
        "last_layer": result.layers[-1],
        "heads": len(result.heads),
        "sampled": result.sampled,
        # what was replaced
        "reason": result.reason,
        "replacement": "" if made is None else made.replacement,
        "count": 0 if made is None else made.count,
        "together": 1 if made is None else made.together,
        "effect_unit": "" if made is None else made.unit,
        "before": None if made is None else made.probability,
        "lead": None if made is None else made.lead,
        "first": parts[0] if parts else None,
        "second": parts[1] if parts[1:] else None,
        # the methods
        "methods": sum(not math.isnan(each.correlation) for each in trust if each.method != DISTANCE),
        "best": best and best.method,
        "agrees": best and best.correlation,
        "shuffled": None if made is None else made.best_of_shuffled,
        "controls": 0 if made is None else made.controls,
        "near": near if best is not None and near >= best.correlation else None,
        "few": made is not None and best is not None and made.count < _FEW,
        "summed": next(summed, None),
        "no_flow": result.most if result.flow is None else None,
        "no_zeroing": result.no_zeroing if result.zeroed is None else "",
        "absent_by": tuple(absent.items()),
        "beside_map": _beside_the_map(result),
    }


def _part(result: Flow, made: Ablated, place: int) -> dict[str, object]:
    """What was replaced, of several the first and how many more, and what that does."""
    effect = float(made.effects[place])
    return {
        "name": in_sentence(result.tokens, place),
        "beside": next((len(each) - 1 for each in made.groups if each[0] == place), 0),
        "effect": effect,
        "after": min(1.0, made.probability * math.exp(-effect)) if made.answer else None,
        "lead": made.lead - effect,
    }


def _beside_the_map(result: Flow) -> list[tuple[str, list[tuple[str, float]]]]:
    """Shares of the positions that stand for no patch, and of the query."""
    if patches_of(result) is None:
        return []
    patched = {place for stretch in result.tokens.stretches for place in stretch.positions}
    beside = [place for place in range(len(result.tokens)) if place not in patched or place == result.query]
    shares = {name: values for name, values in result.methods.items() if name not in SIGNED}
    return [
        (at(result.tokens, place), [(name, float(values[place])) for name, values in shares.items()])
        for place in beside[:4]
    ]


def proofs(result: Flow, say: Said) -> Iterator[tuple[Verdict, str]]:
    """How many heads have each verdict, and whether zeroed values were seen to be zero."""
    rows = say("rows_in")
    yield from proof(result.certified, "head", what=f"{rows} " if rows else "")
    if (done := result.zeroing) is not None:
        mark = "" if done.verdict is Verdict.CERTIFIED else f"{verdict_words(done.verdict)}: "
        runs = done.read_back + done.lost + done.unseen
        yield done.verdict, mark + say("zeroed", runs, done.lost, done.unseen, done.faithful)
    if say.facts["summed"] is not None:
        yield Verdict.CERTIFIED, say("sums")


def patches_of(result: Flow) -> Patches | None:
    """The picture whose patches the tokens are; None where they are none, or only some of a text."""
    stretch = next(iter(result.tokens.stretches), None)
    if not isinstance(stretch, Patches) or len(result.tokens.stretches) > 1:
        return None
    return None if result.tokens.texts else stretch


def unit(result: Flow) -> str:
    """What a position stands for."""
    return result.by.value if result.by.joins else sheet_said.unit(result.tokens)


def ordered(result: Flow, ablated: Ablated) -> list[str]:
    """The last layer's attention, and the others, those that agree best with the effects first."""
    agrees = {each.method: each.correlation for each in ablated.trust if not math.isnan(each.correlation)}
    others = [each for each in result.methods if each != _FIRST]
    return [_FIRST, *sorted(others, key=lambda each: -agrees.get(each, -math.inf))]
