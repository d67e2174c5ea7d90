"""Sheet of `why --answer`: direct contribution of each part, beside the effect of replacing it."""

from collections.abc import Sequence

from attnscope.render.kit.cells import fit, settled
from attnscope.render.kit.command import asking, label
from attnscope.render.kit.numbers import likely, signed_cell
from attnscope.render.kit.words import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import in_sentence, text
from attnscope.render.sheet.sheet import Next, Sheet, saying
from attnscope.render.sheet.table import Column, Scale, Table
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results.claims.effect import Asks
from attnscope.verbs.why.contributions_result import Contribution, Contributions
from attnscope.verbs.why.result import EXACT, LEFT
from attnscope.verbs.why.sheet import marks, named, taken_away

_SHOWN = 12  # most parts shown
_LONGEST = 24


def sheet(result: Contributions, focus: Focus = WHOLE) -> Sheet:
    say = said(result)
    ranking = _ranking(result, say, focus.verbose)
    other = () if result.other_tokens is None else text(result.other_tokens)
    return saying(
        say,
        setting=model_words(result.provenance),
        blocks=(ranking,),
        table=lambda: _table(say, result.ranked, True),
        texts=(*text(result.tokens), *other),
        departs=() if result.other_tokens is None else (say("departs"),),
        untouched=say("sums"),
        main=ranking,
        record=(("answer", result.answer.text), ("logit", result.logit), ("summed", result.summed)),
        next=_next(result, say),
    )


def said(result: Contributions) -> Said:
    """Sentences of `why --answer` about this result, and the facts they use."""
    part, answer, against = result.largest, result.answer, result.against
    removed, controls = part and part.removed, part.controls if part else ()
    bare = settled(fit(answer.text, _LONGEST))
    facts = {
        "answer": f"“{bare}”",
        "bare": bare,
        "against": against and f"“{settled(fit(against.text, _LONGEST))}”",
        "at": None if result.position is None else in_sentence(result.tokens, result.position),
        "next": answer.asks is Asks.NEXT,
        "span": answer.asks is Asks.SPAN,
        "logit_digits": f"{result.logit:+.5g}",
        "sum_digits": f"{result.summed:+.5g}",
        "allowed": EXACT,
        "left": next((each.direct for each in result.parts if each.name == LEFT), None),
        "other_text": result.other_tokens is not None,
        # the part with the largest contribution
        "part": part and part.name,
        "layer": part.layer if part and part.head is not None else None,
        "helps": part is not None and part.direct > 0,
        "change": removed and removed.total,
        "before": answer.probability,
        "after": removed and removed.probability,
        "most": max(map(abs, controls), default=None),
    }
    return Said("contributions", result, facts)


def _ranking(result: Contributions, say: Said, whole: bool) -> Ranking:
    parts = result.ranked
    first = parts if whole or len(parts) <= _SHOWN + 1 else parts[:_SHOWN]
    shown, names = [*first], [_name(result, say, part) for part in first]
    if rest := parts[len(first) :]:
        shown.append(Contribution("", None, None, None, 0.0, sum(each.direct for each in rest)))
        names.append(say("rest", len(rest)))
    table = _table(say, shown, whole)
    return Ranking(
        title=say("ranking_title"),
        of="part",
        names=tuple(names),
        table=table,
        measured=say("measured"),
        marks=marks(table, "direct", "lost"),
        written="direct",
        chosen=frozenset(i for i, part in enumerate(shown) if part.stands),
    )


def _name(result: Contributions, say: Said, part: Contribution) -> str:
    if part.source is None or not part.name.startswith("L"):
        return part.name
    return say("reads", part.name, settled(result.tokens.labels[part.source]))


def _table(say: Said, parts: Sequence[Contribution], whole: bool) -> Table:
    direct = [part.direct for part in parts]
    told = ["" if part.removed is None else "yes" if part.stands else "no" for part in parts]
    chances = [part.removed and part.removed.probability for part in parts]
    then = Column("probability", chances, "answer then", likely, say("says_then"))
    # fmt: off
    return Table(
        *named(parts),
        Column("direct", direct, "brings", signed_cell, say("says_brings"), Scale.around(direct)),
        *taken_away(parts, "change", say("measured"), then, whole),
        Column("called", told, "confirmed?", says=say("says_undone")),
    )
    # fmt: on


def _next(result: Contributions, say: Said) -> Next | None:
    part = result.largest
    if part is not None and part.head is not None and part.layer is not None and result.position is not None:
        place = "--layer", str(part.layer), "--head", str(part.head)
        query = "--query", label(result.tokens, result.position)
        return Next(say("look_from_there"), asking(result, "heads", *place, *query))
    return Next(say("needs"), asking(result, "ablate"))
