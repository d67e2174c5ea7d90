"""Which word stands for which: two columns of words, the links as a list, what gold says."""

from collections.abc import Iterator

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.csv import exact
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import chance, counted, number, percent, weight
from attnscope.render.kit.scale import scale_of
from attnscope.render.kit.words.command import opening_head
from attnscope.render.sheet.blocks import Matrix, Ranking
from attnscope.render.sheet.drawings import Linked, Tie
from attnscope.render.sheet.guard import by_head
from attnscope.render.sheet.said import grid_size, in_sentence, proof, read, setting
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import Alignment, Timing, Verdict
from attnscope.results.claims.alignment import Direction, Judged, LinkScore, TimeScore, Weighing, WordLink
from attnscope.vocabulary import Scaling

_COLUMNS = "source target source_word target_word strength confidence direction gold"
_SIDES = {Direction.BOTH: "both", Direction.TARGET: "target only", Direction.SOURCE: "source only"}
_Aligned = Alignment | Timing
_SURE = 0.9  # from which confidence on it is told how much is right
_SHARES = Scale(0.0, 1.0)
_SHOWN = 4  # heads that are named
_LEAST = 1e-3


def sheet(result: Alignment, focus: Focus = WHOLE) -> Sheet:
    ranking, drawing = _ranking(result), _linked(result)
    judged = () if result.judged is None else (scores(result.judged),)
    sure = () if result.judged is None else tuple(reliability(result.judged, "link"))
    return Sheet(
        title="which word stands for which",
        setting=setting(result, grid_size(result.layers, result.heads)),
        origins=(result.provenance,),
        answer=_answer(result),
        blocks=(drawing, ranking, *judged, *(sure if focus.verbose else ())),
        table=lambda: Table.of(_COLUMNS, _facts(result)),
        texts=tuple(read(result.kind, result.query_tokens, result.key_tokens)),
        control=control(result),
        notes=tuple(notes(result)),
        legend=tuple(_legend(result)),
        proof=proofs(result),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=drawing,
        record=(("pharaoh", result.pharaoh), ("weighing", result.weighing.value)),
        next=opening(result) if result.links else None,
        more=(_matrix(result), head_shares(result), *(() if focus.verbose else sure)),
    )


def _pair(result: Alignment, link: WordLink) -> tuple[str, str]:
    return in_sentence(result.query_tokens, link.query), in_sentence(result.key_tokens, link.key)


def _answer(result: Alignment) -> str:
    if not result.tells and result.judged is None:
        return nothing(result, "these links")
    linked = len(result.query_tokens) - len(result.without_link)
    count = counted(len(result.query_tokens), "word")
    if not result.links:
        return f"No link is more likely right than wrong: none of {count} has one. {_trust(result)}"
    first = max(result.links, key=lambda each: each.strength)
    pair = "{} stands for {}".format(*_pair(result, first))
    if result.calibrated:
        sure = sum((each.confidence or 0) >= _SURE for each in result.links)
        told = f"{sure} of {counted(len(result.links), 'link')} at least {percent(_SURE)} sure"
    else:
        both = sum(each.direction is Direction.BOTH for each in result.links)
        told = f"{both} of {counted(len(result.links), 'link')} the strongest from both sides"
    return f"{linked} of {count} are linked, {told}; most surely {pair}, {_said(first)}. {_trust(result)}"


def _said(link: WordLink) -> str:
    return weight(link.strength) if link.confidence is None else chance(link.confidence)


def _trust(result: Alignment) -> str:
    judged = result.judged
    if judged is None:
        return f"How many are right is not known; {unsure(result)}."
    own: LinkScore = judged.own
    others = ", ".join(f"{each.name} {weight(each.error)}" for each in judged.others)
    told = (
        f"On {cases(judged, 'pair')}: {percent(own.precision)} of links are right, "
        f"{percent(own.recall)} of gold's are found, alignment error {weight(own.error)} ({others})."
    )
    sure = certain(judged, "are right", "links")
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


def unsure(result: _Aligned) -> str:
    """How far heads agree, where no gold says how much is right."""
    agree = (
        f"{_heads_of(result)} agree on them with {weight(result.agreement)}, with the rows of each shuffled"
    )
    mean, most = (weight(float(each)) for each in (result.shuffled.mean(), result.shuffled.max()))
    return f"{agree} with {mean} (at most {most} in {len(result.shuffled)} draws)"


def nothing(result: _Aligned, what: str) -> str:
    """That the attention says nothing: the first line, where heads agree no more than by chance."""
    if len(result.weighed) == 1:
        head = result.weighed[0].name
        return f"Whether {head} tells {what} is not known: one head alone has no other to agree with."
    few = "" if _rows(result) > 2 else ", and so few words could not tell"
    own, others = weight(result.agreement), weight(float(result.shuffled.mean()))
    more = (
        "hardly more than" if own != others and result.agreement > result.shuffled.mean() else "no more than"
    )
    return (
        f"The attention of {result.provenance.model} tells nothing here: {_heads_of(result)} agree on {what} "
        f"with {own}, {more} with the rows of each shuffled ({others}){few}."
    )


def _rows(result: _Aligned) -> int:
    return len(result.query_tokens)


def _heads_of(result: _Aligned) -> str:
    """`all 48 heads`, or those that the model or the user names."""
    count, every = len(result.weighed), len(result.layers) * len(result.heads)
    if result.weighing is Weighing.GIVEN:
        return f"the {count} given heads"
    return f"all {count} heads" if count == every else f"{count} of {every} heads"


def control(result: _Aligned) -> str:
    """What the agreement of heads stands beside."""
    draws = f"the rows of each head in another order, {len(result.shuffled)} draws: heads then agree by luck"
    return draws if result.judged is None else f"{draws}; of what gold says the plain answers in the table"


def _by_what(result: _Aligned) -> str:
    """How heads are counted."""
    ways = {
        Weighing.SHARPNESS: "heads count by how sharp and how monotone their rows are",
        Weighing.MODEL: "heads are those that the model's own settings name as alignment_heads",
        Weighing.GIVEN: "heads are those that were given",
        Weighing.LEARNT: f"heads count by what was learnt on {result.learnt_on}",
    }
    shares = [each.share for each in result.weighed]
    if len(shares) == 1:
        return f"{ways[result.weighing]}: {result.weighed[0].name}"
    if max(shares) - min(shares) < _LEAST:
        return f"{ways[result.weighing]}: {_heads_of(result)} alike"
    most = ", ".join(f"{each.name} {percent(each.share)}" for each in result.weighed[:_SHOWN])
    return f"{ways[result.weighing]}; most: {most}"


def certain(judged: Judged, what: str, several: str) -> str:
    """`Of links that are 90 % sure or more 99 % are right.`; empty without confidence."""
    high = [each for each in judged.reliability if each.low >= _SURE]
    count = sum(each.count for each in high)
    if not count:
        return ""
    right = sum(each.count * each.right for each in high) / count
    said = sum(each.count * each.said for each in high) / count
    return (
        f"Of {several} said to be {percent(_SURE)} sure or more ({percent(said)} in the mean) "
        f"{percent(right)} {what}."
    )


def cases(judged: Judged, of: str) -> str:
    """`200 pairs of judge.txt`, and whether they were learnt on."""
    out = " (each fifth judged by the others)" if judged.held_out else ""
    return f"{counted(judged.cases, of)} of {judged.name}{out}"


def scores(judged: Judged) -> Ranking:
    """The ways side by side."""
    links = isinstance(judged.own, LinkScore)
    return (_link_scores if links else _time_scores)(judged)  # type: ignore[operator]


def _link_scores(judged: Judged) -> Ranking:
    ways = [each for each in judged.scores if isinstance(each, LinkScore)]
    errors = [each.error for each in ways]
    return Ranking(
        title=f"held against {cases(judged, 'pair')}",
        of="way",
        names=tuple(each.name for each in ways),
        table=Table(
            Column("precision", [each.precision for each in ways], "right", weight,
                   "share of its links that gold has", _SHARES),
            Column("recall", [each.recall for each in ways], "found", weight,
                   "share of gold's sure links that it has", _SHARES),
            Column("error", errors, "error", weight, "alignment error rate (Och and Ney 2003)"),
            Column("found", [each.found for each in ways], "first", weight,
                   "share of the target's words whose strongest source is one of gold's", _SHARES),
            Column("links", [each.links for each in ways], "links", lambda each: number(each, 1), "a pair",
                   spared=1),
        ),
        measured="alignment error rate",
        marks=(Mark("bar", "own", "", errors),),
        written="error",
        axis=(0.0, 1.0),
    )  # fmt: skip


def _time_scores(judged: Judged) -> Ranking:
    ways = [each for each in judged.scores if isinstance(each, TimeScore)]
    medians, most = [each.begin_median for each in ways], [each.begin_most for each in ways]
    off, within = (
        "how far they lie off in milliseconds: the middle one",
        "share that lies off by 100 ms at most",
    )
    nine = "what nine in ten do not exceed"
    return Ranking(
        title=f"held against {cases(judged, 'sound')}",
        of="way",
        names=tuple(each.name for each in ways),
        table=Table(
            Column("begin_median", medians, "begin off", _ms, off),
            Column("begin_most", most, "begin 9 in 10", _ms, nine),
            Column("begin_within", [each.begin_within for each in ways], "begin ≤100", weight, within,
                   _SHARES),
            Column("end_median", [each.end_median for each in ways], "end off", _ms, off),
            Column("end_most", [each.end_most for each in ways], "end 9 in 10", _ms, nine, spared=1),
            Column("end_within", [each.end_within for each in ways], "end ≤100", weight, within,
                   _SHARES),
        ),
        measured="milliseconds off, of begins",
        marks=(Mark("span", "own", "up to what nine in ten do not exceed", medians, most),
               Mark("dot", "own", "the middle one", medians)),
        written="begin_median",
    )  # fmt: skip


def _ms(value: float) -> str:
    return f"{value:,.0f}"


def reliability(judged: Judged, of: str) -> Iterator[Ranking]:
    """What is said beside what is right, by how sure it is."""
    if not judged.reliability:
        return
    parts, sure = judged.reliability, "where that share lies with 95 % certainty"
    yield Ranking(
        title=f"how sure {of}s are said to be, and how many are right",
        of="confidence",
        names=tuple(f"{percent(each.low)} to {percent(each.high)}" for each in parts),
        table=Table(
            Column("count", [each.count for each in parts], of + "s", "{:,}".format),
            Column("said", [each.said for each in parts], "said", chance, "mean of what is said", _SHARES),
            Column("right", [each.right for each in parts], "right", chance, "share that is", _SHARES),
            Column("right_low", [each.right_low for each in parts], "from", chance, sure, _SHARES, spared=1),
            Column("right_high", [each.right_high for each in parts], "to", chance, sure, _SHARES, spared=1),
        ),
        measured="share that is right",
        marks=(
            Mark(
                "span",
                "own",
                "where that lies with 95 %",
                [each.right_low for each in parts],
                [each.right_high for each in parts],
            ),
            Mark("dot", "own", "right", [each.right for each in parts]),
            Mark("tick", "control", "said", [each.said for each in parts]),
        ),
        axis=(0.0, 1.0),
    )


def head_shares(result: _Aligned) -> Ranking:
    """The heads that count most."""
    shown = [each for each in result.weighed if each.share >= _LEAST][:12]
    return Ranking(
        title="heads by how much they count",
        of="head",
        names=tuple(each.name for each in shown),
        table=Table(
            Column("share", [each.share for each in shown], "share", percent, "all of them are 100 %")
        ),
        measured="share",
        marks=(Mark("bar", "own", "", [each.share for each in shown]),),
        hidden=len(result.weighed) - len(shown),
    )


def proofs(result: _Aligned) -> tuple[tuple[Verdict, str], ...]:
    """How many heads are certified, in what."""
    every = (each for row in result.verdicts for each in row)
    judged = result.judged
    sample = (
        ""
        if judged is None or not judged.certified
        else f", and in {counted(judged.certified, 'case')} of gold"
    )
    return proof(every, "head", sample)


def notes(result: _Aligned) -> Iterator[str]:
    """What limits the answer."""
    yield _by_what(result)
    yield from result.notes
    if result.judged is not None and result.judged.skipped:
        yield f"{counted(result.judged.skipped, 'case')} of gold were left out: the model does not read them"
    if result.judged is None:
        yield "without gold a strength is no chance: --learn FILE tells how often such an answer is right"
    if result.judged is not None and not result.tells:
        yield unsure(result)


def opening(result: _Aligned) -> Next:
    """What the head looks at that counts most."""
    most = result.weighed[0]
    opened = opening_head(result, most.layer, most.head)
    return Next(f"what does {most.name}, which counts most, look at?", opened)
