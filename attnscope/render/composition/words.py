"""What is said about the composition of heads, the same in a terminal and in a picture."""

from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.words.header import attention_words, model_words
from attnscope.results import Composition, Verdict
from attnscope.results.claims.composition import Pair, Through
from attnscope.tokens import printable

INPUTS = {Through.QUERY: "queries", Through.KEY: "keys", Through.VALUE: "values"}
_LETTERS = {Through.QUERY: "Q", Through.KEY: "K", Through.VALUE: "V"}


def head_words(head: tuple[int, int]) -> str:
    """`L3 H11`."""
    return f"L{head[0]} H{head[1]}"


def pair_words(pair: Pair) -> str:
    """`L0 H0 → L1 H8`."""
    return f"{head_words(pair.early)} → {head_words(pair.late)}"


def subject(result: Composition) -> str:
    """What was asked."""
    if result.shown is None:
        return f"composition of {counted(result.heads, 'head')}"
    return f"composition of {head_words(result.shown)} with the heads before and after it"


def setting(result: Composition) -> str:
    """Model and attention."""
    part = f" of {printable(result.tower)}" if result.tower else ""
    return f"{model_words(result.provenance)} · {attention_words(result.kind)}{part}"


def through_words(result: Composition, through: Through) -> str:
    """`through keys (K): 864 pairs`."""
    count = result.looked_at(through)
    return f"{title_words(through)}: {counted(count, 'pair')} looked at"


def title_words(through: Through) -> str:
    """`through keys (K)`."""
    return f"through {INPUTS[through]} ({_LETTERS[through]})"


def strongest_words(result: Composition) -> str:
    """The strongest pair of all, beside chance."""
    best = [ranked[0] for each in result.through if (ranked := result.ranked(each))]
    if not best:
        return ""
    pair = max(best, key=lambda each: each.difference)
    return (
        f"strongest: {pair_words(pair)} through {INPUTS[pair.through]}, {score_text(pair.score)} where "
        f"chance is {score_text(pair.chance)}"
    )


def beating_words(result: Composition, through: Through) -> str:
    """How many pairs lie above all their draws: where these are many, that alone marks none."""
    beat = int((result.percentile[result.through.index(through)] == 100).sum())
    return f"{beat} of {counted(result.looked_at(through), 'pair')}"


def chance_words(result: Composition, through: Through) -> str:
    """What chance comes to at most, and how many pairs lie above what it comes to for them."""
    largest = result.largest[result.through.index(through)]
    told = f"the largest of {result.draws} random draws of any pair is {score_text(largest)}"
    return f"{told}; {beating_words(result, through)} lie above every draw of their own"


def score_text(value: float) -> str:
    """`.383`; `-` for none."""
    return "-" if value != value else weight_text(value, 3)


def signed_text(value: float) -> str:
    """`+.281`."""
    return "-" if value != value else f"{'-' if value < 0 else '+'}{weight_text(abs(value), 3)}"


def legend() -> list[str]:
    """What the columns say."""
    return [
        "score: how much of what the later head reads is along what the earlier one writes, 0 to 1",
        "chance: its mean where directions are random and singular values are kept; beats: of the draws",
        "others: median of the other pairs of the same two layers",
    ]


def inside_words(result: Composition) -> str:
    """What of the model is in the scores."""
    return f"from weights alone, no text; with {', '.join(result.inside)}"


def outside_words(result: Composition) -> str:
    """What of the model is not."""
    return f"left out: {'; '.join(result.outside)}"


def draws_words(result: Composition) -> str:
    """What the scores are held against."""
    return (
        f"chance: {result.draws} draws, seed {result.seed}, in {result.hidden} dimensions; a score above it "
        "says that two heads are wired for each other, not that the model makes use of it"
    )


def reasons_words(result: Composition) -> list[str]:
    """What has no score, and why."""
    return [f"no score, {printable(each)}" for each in result.reasons]


def certified_words(result: Composition) -> list[tuple[Verdict, str]]:
    """How many heads have each verdict in the run that the matrices were read back in."""
    total = sum(result.certified.values())
    return [
        (
            verdict,
            f"{verdict.value}: {count} of {total} heads in the run that their matrices were read back in",
        )
        for verdict in Verdict
        if (count := result.certified.get(verdict.value))
    ]
