"""An answer before and after: its likeliest choices with all heads of a model and without some of them."""

from dataclasses import dataclass

from attnscope.results.claims.effect import Asks


@dataclass(frozen=True)
class Choice:
    """One of the answers that there might be at a place, and its probability before and after."""

    text: str
    before: float
    after: float


@dataclass(frozen=True)
class Place:
    """The likeliest answers of either run at one place, by falling probability before.

    `meant` is the one that is the answer: the likeliest, or the token that stands there in a text.
    """

    choices: tuple[Choice, ...]
    meant: int

    @property
    def likeliest(self) -> int:
        """The number of the choice that is the likeliest without the heads."""
        return max(range(len(self.choices)), key=lambda number: self.choices[number].after)


@dataclass(frozen=True, eq=False)
class Without:
    """The answer with all heads and without `heads`, whose outputs are zeros, place by place.

    `position` is the mask, or the token after which the answer comes; None where it is of the whole text.
    """

    heads: tuple[tuple[int, int], ...]
    asks: Asks
    position: int | None
    places: tuple[Place, ...]
