"""Which word stands for which: two columns of words, the links as a list, what gold says."""

from collections.abc import Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import chance, counted, percent, weight
from attnscope.render.kit.scale import scale_of
from attnscope.render.sheet.blocks import Matrix, Ranking
from attnscope.render.sheet.drawings import Linked, Tie
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.said import grid_size, in_sentence, read, setting
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.render.sheets import alignment_words as words
from attnscope.results import Alignment
from attnscope.results.claims.alignment import Direction, LinkScore, WordLink
from attnscope.vocabulary import Scaling

_COLUMNS = "source target source_word target_word strength confidence direction gold"
_SIDES = {Direction.BOTH: "both", Direction.TARGET: "target only", Direction.SOURCE: "source only"}


def sheet(result: Alignment, focus: Focus = WHOLE) -> Sheet:
    ranking, drawing = _ranking(result), _linked(result)
    judged = () if result.judged is None else (words.scores(result.judged),)
    sure = () if result.judged is None else tuple(words.reliability(result.judged, "link"))
    return Sheet(
        title="which word stands for which",
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(drawing, ranking, *judged, *(sure if focus.verbose else ())),
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        texts=tuple(read(result.kind, result.query_tokens, result.key_tokens)),
        control=words.control(result),
        notes=tuple(words.notes(result)),
        legend=tuple(_legend(result)),
        proof=words.proofs(result),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=drawing,
        record=(("pharaoh", result.pharaoh), ("weighing", result.weighing.value)),
        next=words.opening(result) if result.links else None,
        more=(_matrix(result), words.head_shares(result), *(() if focus.verbose else sure)),
    )


def _pair(result: Alignment, link: WordLink) -> tuple[str, str]:
    return in_sentence(result.query_tokens, link.query), in_sentence(result.key_tokens, link.key)


def _answer(result: Alignment) -> str:
    """How many words are linked and how surely; then how far that can be trusted."""
    if not result.tells and result.judged is None:
        return words.nothing(result, "these links")
    linked = len(result.query_tokens) - len(result.without_link)
    count = counted(len(result.query_tokens), "word")
    if not result.links:
        return f"No link is more likely right than wrong: none of {count} has one. {_trust(result)}"
    first = max(result.links, key=lambda each: each.strength)
    pair = "{} stands for {}".format(*_pair(result, first))
    if result.calibrated:
        sure = sum((each.confidence or 0) >= words.SURE for each in result.links)
        told = f"{sure} of {counted(len(result.links), 'link')} at least {percent(words.SURE)} sure"
    else:
        both = sum(each.direction is Direction.BOTH for each in result.links)
        told = f"{both} of {counted(len(result.links), 'link')} the strongest from both sides"
    return f"{linked} of {count} are linked, {told}; most surely {pair}, {_said(first)}. {_trust(result)}"


def _said(link: WordLink) -> str:
    return weight(link.strength) if link.confidence is None else chance(link.confidence)


def _trust(result: Alignment) -> str:
    judged = result.judged
    if judged is None:
        return f"How many are right is not known; {words.unsure(result)}."
    own: LinkScore = judged.own
    others = ", ".join(f"{each.name} {weight(each.error)}" for each in judged.others)
    told = (
        f"On {words.cases(judged, 'pair')}: {percent(own.precision)} of links are right, "
        f"{percent(own.recall)} of gold's are found, alignment error {weight(own.error)} ({others})."
    )
    sure = words.certain(judged, "are right", "links")
    return f"{told} {sure}".strip()


def _linked(result: Alignment) -> Linked:
    return Linked(
        title="the words and their links",
        sides=("target", "source"),
        left=_names(result.query_tokens.names),
        right=_names(result.key_tokens.names),
        ties=tuple(
            Tie(
                each.query,
                each.key,
                each.strength,
                each.direction is not Direction.BOTH,
                "{} stands for {}: {}".format(*_pair(result, each), _said(each)),
            )
            for each in result.links
        ),
        says="dark: strong; dashed: the strongest from one side alone" if result.links else "no links",
    )


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(settled, names))


def _ranking(result: Alignment) -> Ranking:
    links = result.links
    strengths = [each.strength for each in links]
    sure = [None if each.confidence is None else each.confidence for each in links]
    told = {"sure": "yes", "possible": "possible", "none": "no", None: ""}
    return Ranking(
        title="links in the order of the target",
        of="link",
        names=tuple(" ← ".join(_pair(result, each)) for each in links),
        table=Table(
            Column("strength", [] if result.calibrated else strengths, "strength", weight,
                   "how much the heads say so, seen from both sides (geometric mean)")
            if not result.calibrated else
            Column("confidence", sure, "sure", chance, "how often such a link is right, by gold"),
            Column("direction", [_SIDES[each.direction] for each in links], "strongest from",
                   says="the side whose word has no stronger link", spared=1),
            Column("gold", [told[each.gold] for each in links], "in gold"),
        ),
        measured="how sure" if result.calibrated else "strength",
        marks=(Mark("bar", "own", "", strengths),),
        axis=(0.0, 1.0),
        repeats=True,
        unshown=_without(result),
    )  # fmt: skip


def _without(result: Alignment) -> str:
    left = ", ".join(in_sentence(result.query_tokens, i) for i in result.without_link)
    return f"without a link: {left}" if left else ""


def _matrix(result: Alignment) -> Matrix:
    return Matrix(
        title="how strong every pair is",
        words=("target", "source"),
        rows=result.query_tokens,
        columns=result.key_tokens,
        values=result.strengths,
        scale=scale_of(result.strengths, result.strengths >= 0, Scaling.SQRT),
        form=weight,
        says="framed: the links",
        marked=tuple((each.query, each.key) for each in result.links),
    )


def _legend(result: Alignment) -> Iterator[str]:
    yield "a target's word is written by the row before it, which is where its weights are taken"
    yield f"even attention gives a word {weight(result.even)}"
    if result.judged is not None:
        yield "any word: each word of the target with one of the source drawn by lot, in the mean"


def _facts(result: Alignment) -> Iterator[tuple[object, ...]]:
    for each in result.links:
        names = result.key_tokens.names[each.key], result.query_tokens.names[each.query]
        sure = "" if each.confidence is None else exact(each.confidence)
        yield each.key, each.query, *names, exact(each.strength), sure, each.direction.value, each.gold or ""
