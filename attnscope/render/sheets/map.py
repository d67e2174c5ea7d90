"""The map of a head as a block, and what has to be said beside every map: how far it can be trusted."""

import math
from dataclasses import dataclass
from functools import cached_property

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import number, parameter, weight
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.words.weights import divides, joined_words, view_words
from attnscope.render.sheet.blocks import Drawing
from attnscope.render.words import Said
from attnscope.results import Projection
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

DISCLAIMER = "the axes have no unit, and distances in the plane are not attention"
LEAST_LINK = 0.01  # the weight of a link that is seen, and the smallest that is written as a number
_LINKS = 5  # from one query
_WIDEST_NAME = 24  # cells
_GOES_ON = 20_000  # iterations after which a map that does not settle no longer visibly changes


@dataclass(frozen=True, eq=False)
class Map(Drawing):
    """The plane: from `query` a link to each of its strongest keys, a ring around it and around `key`."""

    result: Projection
    query: int | None = None
    key: int | None = None
    links: int = _LINKS

    @cached_property
    def linked(self) -> tuple[int, ...]:
        """The strongest keys of the query, and the key too where the query may look at it.

        A link that would be too thin to be seen is left out, but that of the strongest key.
        """
        if self.query is None:
            return ()
        ranked = self.result.ranked_keys(self.query).tolist()
        weights = self.result.weights[self.query]
        seen = [each for each in ranked[: self.links] if weights[each] >= LEAST_LINK] or ranked[:1]
        return (*seen, *(each for each in ranked[len(seen) :] if each == self.key))

    def chosen(self, side: str) -> int | None:
        return self.query if side == "query" else self.key

    def stands_out(self, side: str, position: int) -> bool:
        return position == self.chosen(side) or (side == "key" and position in self.linked)

    @property
    def title(self) -> str:
        """Which query is looked at, or query and key."""
        if self.query is None:
            return ""
        named = f"query {token_name(self.result.query_tokens, self.query)}"
        if self.key is None or not len(self.result.ranked_keys(self.query)):
            return named
        return f"{named} → key {token_name(self.result.key_tokens, self.key)}"

    @property
    def says(self) -> str:
        """What is linked, or what is known of query and key."""
        if self.query is None:
            return ""
        result, keys = self.result, len(self.result.ranked_keys(self.query))
        if not keys:
            return keyless_words(result, self.query)
        if self.key is None:
            linked = len(self.linked)
            strongest = "strongest" if linked == 1 else f"{linked} strongest"
            return f"linked to its {'only key' if keys == 1 else f'{strongest} of {keys} keys'}"
        seen, rank = "masked", result.rank(self.query, self.key)
        if rank is not None:
            found = weight(result.weights[self.query, self.key], 3)
            seen = f"weight {found} · rank {rank} of {keys}"
            seen += f" · scaled score {number(float(result.scaled[self.query, self.key]))}"
        return f"{seen} · {result.metric} distance {number(result.distance[self.query, self.key], 3)}"


def token_name(tokens: Tokens, position: int) -> str:
    """The token's position and name, at most `_WIDEST_NAME` cells of them."""
    return settled(fit(tokens.named(position), _WIDEST_NAME))


def said(result: Projection) -> Said:
    """The words about this map."""
    (agreeing, asked), view = result.agreeing, result.view
    looked_at = (result.allowed & result.answered[:, None]).sum(axis=1)
    correlation, trust = result.correlation, result.trustworthiness
    return Said(
        "map",
        result,
        {
            "head": result.head.name,
            "by": view.by.several if view is not None and view.by.joins else None,
            "agreeing": agreeing,
            "asked": asked,
            "few": result.misses,
            "luck": (1 / looked_at[looked_at > 0]).sum(),
            "correlation": None if math.isnan(correlation) else correlation,
            "size": abs(correlation),
            "trust": None if math.isnan(trust) else trust,
            "goes_on": _GOES_ON if result.iterations < _GOES_ON else None,
            "one_point": not result.iterations,
            "perplexity": parameter(result.perplexity, 3),
            "wanted": None
            if result.perplexity == result.wanted_perplexity
            else parameter(result.wanted_perplexity, 3),
        },
    )


def points_words(result: Projection) -> list[str]:
    """What the points of a view are, what was left out, what is proved; nothing of a map of all tokens."""
    view = result.view
    if view is None:
        return []
    of = "pieces" if view.by is Unit.WORD else "tokens"
    told = f"points are {view.by.several}: mean vectors and mean scores of their {of}"
    points = [told] if view.by.joins else []
    if _leaves_out(result, "query") or _leaves_out(result, "key"):
        left_out = "special tokens left out"
        if divides(view):
            left_out += ", rows divided by what remains"
        elif _leaves_out(result, "key"):
            holding = "they and the sink hold" if result.head.sink is not None else "they hold"
            left_out += f": {holding} the rest of each row"
        points.append(left_out)
    return [
        *points,
        *(f"weights by {each}" if each == joined_words(view.by) else each for each in view_words(view)),
    ]


def _leaves_out(result: Projection, side: str) -> bool:
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
    """Why a query has no key to show: it never had one, or the view left out those that it had."""
    view = result.view
    emptied = view is not None and bool(result.head.answered[list(view.query_groups[query])].any())
    return f"has {NOTHING_LEFT if emptied else NO_KEY}"
