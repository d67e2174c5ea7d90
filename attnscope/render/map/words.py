"""What has to be said beside every map: how far it can be trusted, what nearness means, how it was made."""

import math

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, weight_text
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
    return f"{named}: {nearness_words(result.correlation)}"


def nearness_words(correlation: float) -> str:
    """What a near key can be taken for in a head with this `correlation` of distance and score, -1 to 1."""
    size = abs(correlation)
    if size < _NONE:
        return "nearness says nothing about the score"
    if size < _FAINT:
        return "nearness says little about the score"
    often = "nearly always" if size >= _STRONG else "often"
    return f"near keys {often} score {'high' if correlation < 0 else 'low'}"


def settings_words(result: Projection) -> list[str]:
    """How the map was made, one phrase each; what was asked for and could not be had is told."""
    perplexity = f"perplexity {result.perplexity:.3g}"
    if result.perplexity != result.wanted_perplexity:
        perplexity += f" (not {result.wanted_perplexity:.3g}: too few points)"
    keys = ["keys moved to the mean of the queries"] if result.centred else []
    return ["t-SNE", f"{result.metric} distance", *keys, perplexity, f"seed {result.seed}", _ending(result)]


def title_words(result: Projection, query: int, key: int | None, linked: int) -> tuple[str, str]:
    """Two lines: which query is looked at, or query and key; and what is shown or known of them."""
    head = result.head
    named = f"query {token_name(head.query_tokens, query)}"
    keys = int(head.allowed[query].sum())
    if not keys:
        return named, "has no valid key"
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
            f"weight {weight_text(head.weights[query, key], 3)} · rank {rank} of {keys}"
            f" · scaled score {head.scaled[query, key]:.2f}"
        )
    )
    return f"{named} → key {token_name(head.key_tokens, key)}", f"{seen} · {distance}"


def token_name(tokens: Tokens, position: int) -> str:
    """The token's label, at most `_WIDEST_NAME` cells of it."""
    return settled(fit(tokens.labels[position], _WIDEST_NAME))


def _ending(result: Projection) -> str:
    if not result.iterations:
        return "all queries and keys are one point"
    how = "settled after" if result.settled else "DID NOT SETTLE in"
    return f"{how} {counted(result.iterations, 'iteration')}"


def signed(value: float) -> str:
    """Two decimals with a sign."""
    return f"{value:+.2f}" if round(value, 2) else "0.00"
