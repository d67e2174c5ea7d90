"""What has to be said beside every map: how far it can be trusted, what nearness means, how it was made."""

import math

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, weight_text
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.words.weights import JOINED, divides, view_words
from attnscope.results import Projection
from attnscope.tokens import Tokens

DISCLAIMER = "the axes have no unit, and distances in the plane are not attention"
_WIDEST_NAME = 24  # cells
_STRONG, _FAINT, _NONE = 0.9, 0.4, 0.2  # sizes of a rank correlation from which words change


def trust_words(result: Projection) -> str:
    """`trustworthiness 0.93 over 5 neighbours: ...`."""
    if math.isnan(result.trustworthiness):
        return "trustworthiness undefined: too few points, or all in one place"
    over = f"trustworthiness {result.trustworthiness:.2f} over {counted(result.neighbours, 'neighbour')}"
    return f"{over} (1: neighbours on the map are neighbours in the full space)"


def correlation_words(result: Projection) -> str:
    """Spearman's correlation, and what it means for this head."""
    if math.isnan(result.correlation):
        return "correlation of distance and score undefined: no two distances or no two scores differ"
    named = f"correlation of full-space distance and score {signed(result.correlation)} (Spearman)"
    return f"{named}: {nearness_words(result.correlation)}; {agreement_words(result)}"


def nearness_words(correlation: float) -> str:
    """What the `correlation` of distance and score over all pairs, -1 to 1, says of near ones."""
    size = abs(correlation)
    if size < _NONE:
        return "nearness says nothing about the score"
    if size < _FAINT:
        return "nearness says little about the score"
    mostly = "" if size >= _STRONG else "mostly "
    return f"over all pairs near ones {mostly}score {'high' if correlation < 0 else 'low'}"


def agreement_words(result: Projection) -> str:
    """For how many queries near means attended to, which no correlation over all pairs tells."""
    agreeing, asked = result.agreeing
    only = "only " if asked and agreeing < asked / 2 else ""
    return f"the nearest key is the strongest for {only}{agreeing} of {counted(asked, 'query')}"


def centring_words(result: Projection) -> str:
    """What moving the keys onto the queries does to the map, or would do where they lie apart."""
    known = not math.isnan(result.otherwise)
    told = f"correlation {signed(result.otherwise)}"
    if result.centred:
        moved = "keys moved to the mean of the queries, which leaves attention as it is"
        return f"{moved}; without that {told}" if known else moved
    if not result.apart or not known:
        return ""
    return (
        "queries and keys lie apart: between two clouds nearness tells little; --center-keys moves the keys "
        f"to the mean of the queries, which leaves attention as it is, and then {told}"
    )


def settings_words(result: Projection) -> list[str]:
    """How the map was made, one phrase each; what was asked for and could not be had is told."""
    perplexity = f"perplexity {result.perplexity:.3g}"
    if result.perplexity != result.wanted_perplexity:
        perplexity += f" (not {result.wanted_perplexity:.3g}: too few points)"
    return ["t-SNE", f"{result.metric} distance", perplexity, f"seed {result.seed}", _ending(result)]


def kind_words(result: Projection) -> str:
    """What is drawn: `t-SNE map of words`."""
    points = " of words" if result.view is not None and result.view.words else ""
    return f"t-SNE map{points}" if result.settled else f"t-SNE map{points} that DID NOT SETTLE"


def points_words(result: Projection) -> list[str]:
    """What the points of a view are, what was left out, what is proved; nothing of a map of all tokens."""
    view = result.view
    if view is None:
        return []
    points = ["points are words: mean vectors and mean scores of their pieces"] if view.words else []
    weights = [f"weights by {each}" if each == JOINED else each for each in view_words(view)]
    return [*points, *_left_out(result), *weights]


def _left_out(result: Projection) -> list[str]:
    """Which points there are not, and where their weight is."""
    if not _leaves_out(result, "query") and not _leaves_out(result, "key"):
        return []
    if result.view is not None and divides(result.view):
        return ["special tokens left out, rows divided by what remains"]
    holding = "they and the sink hold" if result.head.sink is not None else "they hold"
    rest = f": {holding} the rest of each row" if _leaves_out(result, "key") else ""
    return [f"special tokens left out{rest}"]


def _leaves_out(result: Projection, side: str) -> bool:
    """Whether the view lacks tokens that the head has among its queries, or keys."""
    view = result.view
    if view is None:
        return False
    if side == "query":
        return sum(map(len, view.query_groups)) < len(result.head.query_tokens)
    return sum(map(len, view.key_groups)) < len(result.head.key_tokens)


def elsewhere_words(result: Projection) -> str:
    """Who takes what a row lacks to 1, with the verb; empty where it lacks nothing."""
    if result.view is not None and divides(result.view):
        return ""
    sink = result.head.sink is not None
    if _leaves_out(result, "key"):
        return "special tokens and the sink take" if sink else "special tokens take"
    return "the sink takes" if sink else ""


def keyless_words(result: Projection, query: int) -> str:
    """Why `query` has no key to show."""
    return f"has {NOTHING_LEFT if _emptied(result, query) else NO_KEY}"


def _emptied(result: Projection, query: int) -> bool:
    """Whether the query had a key before the view left out some."""
    view = result.view
    return view is not None and bool(result.head.answered[list(view.query_groups[query])].any())


def title_words(result: Projection, query: int, key: int | None, linked: int) -> tuple[str, str]:
    """Two lines: which query is looked at, or query and key; and what is shown or known of them."""
    named = f"query {token_name(result.query_tokens, query)}"
    keys = len(result.ranked_keys(query))
    if not keys:
        return named, keyless_words(result, query)
    if key is None:
        return (
            named,
            f"linked to {'its only key' if keys == 1 else f'the strongest {linked} of its {keys} keys'}",
        )
    distance = f"{result.metric} distance {result.distance[query, key]:.3f}"
    rank = result.rank(query, key)
    seen = (
        "masked"
        if rank is None
        else (
            f"weight {weight_text(result.weights[query, key], 3)} · rank {rank} of {keys}"
            f" · scaled score {result.scaled[query, key]:.2f}"
        )
    )
    return f"{named} → key {token_name(result.key_tokens, key)}", f"{seen} · {distance}"


def token_name(tokens: Tokens, position: int) -> str:
    """The token's position and name, at most `_WIDEST_NAME` cells of them."""
    return settled(fit(tokens.named(position), _WIDEST_NAME))


def _ending(result: Projection) -> str:
    if not result.iterations:
        return "all queries and keys are one point"
    how = "settled after" if result.settled else "DID NOT SETTLE in"
    return f"{how} {counted(result.iterations, 'iteration')}"


def signed(value: float) -> str:
    """Two decimals with a sign."""
    return f"{value:+.2f}" if round(value, 2) else "0.00"
