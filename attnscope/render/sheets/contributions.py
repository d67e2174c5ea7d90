"""Why a model answers so: what each part brings to the answer directly, beside what taking it away does."""

from collections.abc import Sequence

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import likely, signed, signed_cell
from attnscope.render.kit.words.command import asking, opening_head
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets import contributions_words as words
from attnscope.render.sheets.parts import marks, named, taken_away
from attnscope.render.sheets.prediction import AsRead
from attnscope.results.claims.contributions import Contribution, Contributions
from attnscope.results.claims.effect import Asks
from attnscope.vocabulary import Kind

_SHOWN = 12  # parts


def sheet(result: Contributions, focus: Focus = WHOLE) -> Sheet:
    ranking = _ranking(result, focus.verbose)
    other = () if result.other_tokens is None else text(result.other_tokens)
    return Sheet(
        title=words.title(result),
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=words.answer(result),
        blocks=(ranking,),
        table=lambda: _table(result, result.ranked, True),
        texts=(*text(result.tokens), *other),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(words.legend(result)),
        departs=() if result.other_tokens is None else ("parts of another text",),
        untouched=words.proof(result),
        main=ranking,
        record=(("answer", result.answer.text), ("logit", result.logit), ("summed", result.summed)),
        next=_next(result),
    )


def _ranking(result: Contributions, whole: bool) -> Ranking:
    """The largest parts first; what has no row of its own is added up."""
    parts = result.ranked
    first = parts if whole or len(parts) <= _SHOWN + 1 else parts[:_SHOWN]
    shown, names = [*first], [_name(result, part) for part in first]
    if rest := parts[len(first) :]:
        shown.append(Contribution("", None, None, None, 0.0, sum(each.direct for each in rest)))
        names.append(f"{len(rest)} others")
    table = _table(result, shown, whole)
    return Ranking(
        title=f"what each part brings directly, in all {signed(result.summed)}",
        of="part",
        names=tuple(names),
        table=table,
        measured=words.measured(result),
        marks=marks(table, "direct", "lost"),
        written="direct",
        chosen=frozenset(i for i, part in enumerate(shown) if part.stands),
    )


def _name(result: Contributions, part: Contribution) -> str:
    """`L0 H0 (reads river@1)`."""
    if part.source is None or not part.name.startswith("L"):
        return part.name
    return f"{part.name} (reads {settled(result.tokens.labels[part.source])})"


def _table(result: Contributions, parts: Sequence[Contribution], whole: bool) -> Table:
    direct, of = [part.direct for part in parts], words.measured(result)
    told = ["" if part.removed is None else "yes" if part.stands else "no" for part in parts]
    chances = [part.removed and part.removed.probability for part in parts]
    then = Column("probability", chances, "answer then", likely, "how likely the answer then is")
    # fmt: off
    return Table(
        *named(parts),
        Column("direct", direct, "brings", signed_cell,
               f"what the part brings to {of} by no later part; all of them sum to it",
               Scale.around(direct)),
        *taken_away(parts, "change", of, then, whole),
        Column("called", told, "as told?", says="yes: taking it away moves the answer against what it "
               "brings, by more than any other of its kind"),
    )
    # fmt: on


def _next(result: Contributions) -> Next | None:
    """What the largest head looks at where the answer stands, or which heads the answer needs."""
    kind = Kind.DECODER if result.answer.asks is Asks.NEXT else Kind.ENCODER
    read, part = AsRead(result.tokens, kind, result.provenance), result.largest
    if part is not None and part.head is not None and part.layer is not None and result.position is not None:
        opened = opening_head(read, part.layer, part.head, result.position)
        return Next(f"what does {part.name} look at from there?", opened)
    return Next(f"which heads does {words.quoted(result.answer)} need?", asking(read, "ablate"))
