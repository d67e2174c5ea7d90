"""Why a model answers so: what each part brings to the answer directly, beside what taking it away does."""

from collections.abc import Iterator, Sequence

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import likely, number, signed, signed_cell, significant
from attnscope.render.kit.words.command import asking, opening_head
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import in_sentence, text
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets.parts import marks, named, taken_away
from attnscope.render.sheets.prediction import AsRead
from attnscope.results.claims.contributions import Case, Contribution, Contributions
from attnscope.results.claims.effect import Answer, Asks
from attnscope.results.claims.why import EXACT, LEFT
from attnscope.vocabulary import Kind

_SHOWN = 12  # parts
_LONGEST = 24


def sheet(result: Contributions, focus: Focus = WHOLE) -> Sheet:
    ranking = _ranking(result, focus.verbose)
    other = () if result.other_tokens is None else text(result.other_tokens)
    return Sheet(
        title=_title(result),
        setting=model_words(result.provenance),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(ranking,),
        table=lambda: _table(result, result.ranked, True),
        texts=(*text(result.tokens), *other),
        control=_control(result),
        notes=tuple(_notes(result)),
        legend=tuple(_legend(result)),
        departs=() if result.other_tokens is None else ("parts of another text",),
        untouched=_proof(result),
        main=ranking,
        record=(("answer", result.answer.text), ("logit", result.logit), ("summed", result.summed)),
        next=_next(result),
    )


def _ranking(result: Contributions, whole: bool) -> Ranking:
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
        measured=_measured(result),
        marks=marks(table, "direct", "lost"),
        written="direct",
        chosen=frozenset(i for i, part in enumerate(shown) if part.stands),
    )


def _name(result: Contributions, part: Contribution) -> str:
    if part.source is None or not part.name.startswith("L"):
        return part.name
    return f"{part.name} (reads {settled(result.tokens.labels[part.source])})"


def _table(result: Contributions, parts: Sequence[Contribution], whole: bool) -> Table:
    direct, of = [part.direct for part in parts], _measured(result)
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
    kind = Kind.DECODER if result.answer.asks is Asks.NEXT else Kind.ENCODER
    read, part = AsRead(result.tokens, kind, result.provenance), result.largest
    if part is not None and part.head is not None and part.layer is not None and result.position is not None:
        opened = opening_head(read, part.layer, part.head, result.position)
        return Next(f"what does {part.name} look at from there?", opened)
    return Next(f"which heads does {_quoted(result.answer)} need?", asking(read, "ablate"))


def _quoted(answer: Answer) -> str:
    return f"“{settled(fit(answer.text, _LONGEST))}”"


def _title(result: Contributions) -> str:
    if result.against is None:
        return f"why the model answers {_quoted(result.answer)}"
    return f"why the model answers {_quoted(result.answer)} and not {_quoted(result.against)}"


def _measured(result: Contributions) -> str:
    """What all parts sum to."""
    if result.against is None:
        return f"the logit of {_quoted(result.answer)}"
    return f"the lead of {_quoted(result.answer)} over {_quoted(result.against)}"


def _where(result: Contributions) -> str:
    if result.position is None:
        return ""
    place = in_sentence(result.tokens, result.position)
    return f"After {place} " if result.answer.asks is Asks.NEXT else f"At {place} "


def _answer(result: Contributions) -> str:
    """How far the answer lies above the other, which part brings most, and what taking that away does."""
    size, where = number(abs(result.logit)), _where(result)
    of = f"logit of {_quoted(result.answer)}"
    if result.against is None:
        told = f"the {of} is {number(result.logit)}"
    else:
        lies = "above" if result.logit > 0 else "below"
        told = f"the {of} lies {size} {lies} that of {_quoted(result.against)}"
    told = f"{where}{told}" if where else f"{told[:1].upper()}{told[1:]}"
    part = result.largest
    if part is None:
        return f"{told}. No head and no MLP that can be told apart brings anything to it."
    most = f"Of all heads and MLPs, {part.name} brings most of it directly, {signed(part.direct)}"
    if part.direct * result.logit < 0:
        most = f"Of all heads and MLPs, {part.name} does most directly, the other way: {signed(part.direct)}"
    return f"{told}. {most}{_taken(result, part)}."


def _taken(result: Contributions, part: Contribution) -> str:
    assert part.removed is not None, "it was taken away"
    changes = f"taking it away changes {_it(result)} by {signed(part.removed.total)}"
    if result.case is Case.OTHERWISE:
        return f", but {changes}, which is not what that foretells"
    if result.case is Case.ALONE:
        none = "no other MLP" if part.head is None else "no other head in its layer"
        return f"; {changes}, and there is {none} to hold that against"
    others = "any other MLP" if part.head is None else f"any other head of layer {part.layer}"
    most = significant(max(map(abs, part.controls)))
    if result.case is Case.STANDS:
        return f", and {changes}, more than taking away {others} does (at most ±{most})"
    one = "another MLP" if part.head is None else f"another head of layer {part.layer}"
    return f", but {changes}, and taking away {one} changes it as much or more (±{most})"


def _it(result: Contributions) -> str:
    return "the logit" if result.against is None else "the difference"


def _control(result: Contributions) -> str:
    instead = "its mean over the other tokens"
    if result.other_tokens is not None:
        instead = "what it is in the other text"
    return (
        "others are the other heads of the layer, of an MLP the other MLPs, each taken away alone in the "
        f"same way: replaced by {instead}, at the place of the answer alone"
    )


def _notes(result: Contributions) -> Iterator[str]:
    yield (
        "what a part brings directly does not foretell what is lost without it: later parts are made of it, "
        "and norms rescale what is left"
    )
    left = next((part for part in result.parts if part.name == LEFT), None)
    if left is not None:
        yield (
            f"the word head is not linear: parts are told along its slope at what it was given, and "
            f"{signed(left.direct)} is left over, of no part alone"
        )
    if result.against is None:
        yield (
            "a logit alone does not make an answer likely, only how far it lies above others: --against WORD "
            "tells that"
        )
    yield from result.notes


def _proof(result: Contributions) -> str:
    """Both sums, and how far they lie apart."""
    what = "logit" if result.against is None else "logit difference"
    of = "it" if result.against is None else "the larger logit"
    return (
        f"the parts sum to {result.summed:+.5g}, the {what} of the untouched model is {result.logit:+.5g} "
        f"(off {significant(result.residual)} of {of}, {significant(EXACT, 1)} allowed)"
    )


def _legend(result: Contributions) -> Iterator[str]:
    ends = "; the logits of both ends of a span are added" if result.answer.asks is Asks.SPAN else ""
    told = "directly: through the final norm at its observed scale and the word head, by no later head or MLP"
    yield told + ends
    yield (
        "MLP: whatever is not linear after the attention of a layer; token, position and segment are "
        "embeddings, which like biases have shares and are not taken away"
    )
