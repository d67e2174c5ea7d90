"""The map of a head as a block, and what has to be said beside every map: how far it can be trusted."""

import math
from dataclasses import dataclass
from functools import cached_property

from attnscope.render.kit.labels import fit, settled
from attnscope.render.kit.numbers import counted, number, parameter, signed, weight
from attnscope.render.kit.stage import NO_KEY, NOTHING_LEFT
from attnscope.render.kit.words.weights import divides, joined_words, view_words
from attnscope.render.sheet.blocks import Drawing
from attnscope.results import Projection
from attnscope.tokens import Tokens
from attnscope.vocabulary import Unit

DISCLAIMER = "the axes have no unit, and distances in the plane are not attention"
LEAST_LINK = 0.01  # the weight of a link that is seen, and the smallest that is written as a number
_LINKS = 5  # from one query
_WIDEST_NAME = 24  # cells
_STRONG, _FAINT, _NONE = 0.9, 0.4, 0.2  # sizes of a rank correlation from which words change
_GOES_ON = 20_000  # iterations after which a map that does not settle no longer visibly changes
_ONE_POINT = "all queries and keys are one point"
READABLE, KEPT = -0.8, 0.8  # a correlation and a trustworthiness from which a map may be read: conventions


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


def answer_words(result: Projection) -> str:
    """Whether the map can be read: how near a key is and its score, and what the plane keeps of both."""
    name, said = result.head.name, list[str]()
    loses = result.trustworthiness < KEPT
    if loses:
        said.append(
            f"The plane loses {name}: neighbours on it are often none (trustworthiness only "
            f"{number(result.trustworthiness)} of 1). Use the numbers below"
        )
    said.append(_distances(result, first=not said))
    if not loses and not math.isnan(result.trustworthiness):
        said.append(f"The plane keeps neighbourhoods (trustworthiness {number(result.trustworthiness)})")
    if not result.settled:
        goes_on = f"; --max-iter {_GOES_ON} goes on" if result.iterations < _GOES_ON else ""
        after = counted(result.iterations, "iteration")
        said.append(f"Its points still moved when it was stopped after {after}{goes_on}")
    if result.apart:
        said.append("Queries and keys lie apart: between two clouds nearness tells little")
    return ". ".join((*said, "Distance is not attention."))


def _distances(result: Projection, first: bool) -> str:
    (agreeing, asked), name, found = result.agreeing, result.head.name, result.correlation
    strongest = f"the nearest key is the strongest for {agreeing} of {counted(asked, 'query')}"
    if math.isnan(found):
        opened = f"The map of {name} cannot be judged" if first else "Distances cannot be judged"
        return f"{opened}: {'no two distances or no two scores differ' if result.iterations else _ONE_POINT}"
    told = f"rank correlation of distance and score {signed(found)}"
    if found <= READABLE and 2 * agreeing >= asked:
        opened = f"The map of {name} can be read: the" if first else "In the full space the"
        return f"{opened} nearer a key, the higher its score ({told}; {strongest})"
    opened = f"Do not read weights off the map of {name}" if first else "Distances do not tell weights either"
    if 2 * agreeing < asked:
        only = strongest.replace(f" {agreeing} of", f" only {agreeing} of")
        return f"{opened}: {only} ({told})"
    return f"{opened}: over all pairs near ones do not reliably score high ({told}), though {strongest}"


def trust_words(result: Projection) -> str:
    """`trustworthiness 0.93 over 5 neighbours: ...`."""
    if math.isnan(result.trustworthiness):
        return "trustworthiness undefined: too few points, or all in one place"
    over = f"trustworthiness {number(result.trustworthiness)} over {counted(result.neighbours, 'neighbour')}"
    return f"{over} (1: neighbours on the map are neighbours in the full space; Venna and Kaski 2001)"


def correlation_words(result: Projection) -> str:
    """What nearness means for this head, and the correlation that says so."""
    if math.isnan(result.correlation):
        return "correlation of distance and score undefined: no two distances or no two scores differ"
    return (
        f"{nearness_words(result.correlation)}: the correlation of full-space distance and score is "
        f"{signed(result.correlation)} (Spearman); {_agreement(result)}"
    )


def nearness_words(correlation: float) -> str:
    """What the `correlation` of distance and score over all pairs, -1 to 1, says of near ones."""
    size = abs(correlation)
    if size < _NONE:
        return "nearness says nothing about the score"
    if size < _FAINT:
        return "nearness says little about the score"
    mostly = "" if size >= _STRONG else "mostly "
    return f"over all pairs near ones {mostly}score {'high' if correlation < 0 else 'low'}"


def _agreement(result: Projection) -> str:
    agreeing, asked = result.agreeing
    only = "only " if asked and agreeing < asked / 2 else ""
    return f"the nearest key is the strongest for {only}{agreeing} of {counted(asked, 'query')}"


def settings_words(result: Projection) -> list[str]:
    """How the map was made, one phrase each; what was asked for and could not be had is told."""
    perplexity = f"perplexity {parameter(result.perplexity, 3)}"
    if result.perplexity != result.wanted_perplexity:
        perplexity += f" (not {parameter(result.wanted_perplexity, 3)}: too few points)"
    how = "settled after" if result.settled else "not settled in"
    ending = f"{how} {counted(result.iterations, 'iteration')}"
    ending = ending if result.iterations else _ONE_POINT
    return ["t-SNE", f"{result.metric} distance", perplexity, f"seed {result.seed}", ending]


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
