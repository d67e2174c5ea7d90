"""What is said of links and of times: how far they can be trusted, by which heads, and what gold says."""

from collections.abc import Iterator

from attnscope.render.kit.numbers import chance, counted, number, percent, weight
from attnscope.render.kit.words.command import opening_head
from attnscope.render.sheet.blocks import Ranking
from attnscope.render.sheet.said import proof
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Next
from attnscope.render.sheet.table import Column, Mark, Table
from attnscope.results import Alignment, Timing, Verdict
from attnscope.results.claims.alignment import Judged, LinkScore, TimeScore, Weighing

Aligned = Alignment | Timing
SURE = 0.9  # from which confidence on it is told how much is right
SHARES = Scale(0.0, 1.0)
_SHOWN = 4  # heads that are named
_LEAST = 1e-3


def unsure(result: Aligned) -> str:
    """How far heads agree, where no gold says how much is right."""
    agree = (
        f"{heads_of(result)} agree on them with {weight(result.agreement)}, with the rows of each shuffled"
    )
    mean, most = (weight(float(each)) for each in (result.shuffled.mean(), result.shuffled.max()))
    return f"{agree} with {mean} (at most {most} in {len(result.shuffled)} draws)"


def nothing(result: Aligned, what: str) -> str:
    """That the attention says nothing: the first line, where heads agree no more than by chance."""
    if len(result.weighed) == 1:
        head = result.weighed[0].name
        return f"Whether {head} tells {what} is not known: one head alone has no other to agree with."
    few = "" if rows(result) > 2 else ", and so few words could not tell"
    own, others = weight(result.agreement), weight(float(result.shuffled.mean()))
    more = (
        "hardly more than" if own != others and result.agreement > result.shuffled.mean() else "no more than"
    )
    return (
        f"The attention of {result.provenance.model} tells nothing here: {heads_of(result)} agree on {what} "
        f"with {own}, {more} with the rows of each shuffled ({others}){few}."
    )


def rows(result: Aligned) -> int:
    return len(result.query_tokens)


def heads_of(result: Aligned) -> str:
    """`all 48 heads`, or those that the model or the user names."""
    count, every = len(result.weighed), len(result.layers) * len(result.heads)
    if result.weighing is Weighing.GIVEN:
        return f"the {count} given heads"
    return f"all {count} heads" if count == every else f"{count} of {every} heads"


def control(result: Aligned) -> str:
    """What the agreement of heads stands beside."""
    draws = f"the rows of each head in another order, {len(result.shuffled)} draws: heads then agree by luck"
    return draws if result.judged is None else f"{draws}; of what gold says the plain answers in the table"


def by_what(result: Aligned) -> str:
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
        return f"{ways[result.weighing]}: {heads_of(result)} alike"
    most = ", ".join(f"{each.name} {percent(each.share)}" for each in result.weighed[:_SHOWN])
    return f"{ways[result.weighing]}; most: {most}"


def certain(judged: Judged, what: str, several: str) -> str:
    """`Of links that are 90 % sure or more 99 % are right.`; empty without confidence."""
    high = [each for each in judged.reliability if each.low >= SURE]
    count = sum(each.count for each in high)
    if not count:
        return ""
    right = sum(each.count * each.right for each in high) / count
    said = sum(each.count * each.said for each in high) / count
    return (
        f"Of {several} said to be {percent(SURE)} sure or more ({percent(said)} in the mean) "
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
                   "share of its links that gold has", SHARES),
            Column("recall", [each.recall for each in ways], "found", weight,
                   "share of gold's sure links that it has", SHARES),
            Column("error", errors, "error", weight, "alignment error rate (Och and Ney 2003)"),
            Column("found", [each.found for each in ways], "first", weight,
                   "share of the target's words whose strongest source is one of gold's", SHARES),
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
                   SHARES),
            Column("end_median", [each.end_median for each in ways], "end off", _ms, off),
            Column("end_most", [each.end_most for each in ways], "end 9 in 10", _ms, nine, spared=1),
            Column("end_within", [each.end_within for each in ways], "end ≤100", weight, within,
                   SHARES),
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
            Column("said", [each.said for each in parts], "said", chance, "mean of what is said", SHARES),
            Column("right", [each.right for each in parts], "right", chance, "share that is", SHARES),
            Column("right_low", [each.right_low for each in parts], "from", chance, sure, SHARES, spared=1),
            Column("right_high", [each.right_high for each in parts], "to", chance, sure, SHARES, spared=1),
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


def head_shares(result: Aligned) -> Ranking:
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


def proofs(result: Aligned) -> tuple[tuple[Verdict, str], ...]:
    """How many heads are certified, in what."""
    every = (each for row in result.verdicts for each in row)
    judged = result.judged
    sample = (
        ""
        if judged is None or not judged.certified
        else f", and in {counted(judged.certified, 'case')} of gold"
    )
    return proof(every, "head", sample)


def notes(result: Aligned) -> Iterator[str]:
    """What limits the answer."""
    yield by_what(result)
    yield from result.notes
    if result.judged is not None and result.judged.skipped:
        yield f"{counted(result.judged.skipped, 'case')} of gold were left out: the model does not read them"
    if result.judged is None:
        yield "without gold a strength is no chance: --learn FILE tells how often such an answer is right"
    if result.judged is not None and not result.tells:
        yield unsure(result)


def opening(result: Aligned) -> Next:
    """What the head looks at that counts most."""
    most = result.weighed[0]
    opened = opening_head(result, most.layer, most.head)
    return Next(f"what does {most.name}, which counts most, look at?", opened)
