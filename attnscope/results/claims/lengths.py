"""Single texts of a corpus, and classes of texts of about one length: of both totals and results speak."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnscope.results.base.parts import fits

FEWEST = 5  # texts of a class that both corpora have: of fewer their scatter says too little


@dataclass(frozen=True)
class CorpusText:
    """A text of a corpus.

    `place` is where it stands, `file:line`; `tokens` are how many were read of it; `text` is how it begins;
    `whole` says that this is all of it, and that read alone it gives the same numbers.
    """

    place: str
    tokens: int
    text: str
    whole: bool = True


@dataclass(frozen=True)
class LengthClass:
    """Texts of about one length.

    `least` and `most` are the fewest and the most tokens of a text; `texts` is how many there are,
    `tokens` how many tokens these have in all.
    """

    least: int
    most: int
    texts: int
    tokens: int

    @property
    def mean(self) -> float:
        """The tokens of a text in the mean."""
        return self.tokens / self.texts

    def check_parts(self) -> None:
        fits(self.texts > 0, "'texts' are none")
        fits(
            self.least * self.texts <= self.tokens <= self.most * self.texts, "'tokens' are not of the class"
        )


@dataclass(frozen=True)
class LengthPair:
    """Texts of about one length in two corpora.

    `least` and `most` are the fewest and the most tokens of a text; `texts` is how many either corpus has,
    `tokens` how many tokens these have in all.
    """

    least: int
    most: int
    texts: tuple[int, int]
    tokens: tuple[int, int]

    @property
    def shared(self) -> bool:
        """Whether both have enough of them to be compared."""
        return min(self.texts) >= FEWEST

    def check_parts(self) -> None:
        fits(max(self.texts) > 0 and min(self.texts) >= 0, "'texts' are none")


def alike(lengths: Sequence[LengthPair]) -> bool:
    """Whether every class has the same share of the texts of both."""
    first, second = (sum(pair.texts[side] for pair in lengths) for side in (0, 1))
    return all(pair.texts[0] * second == pair.texts[1] * first for pair in lengths)


def can_be_equal(lengths: Sequence[LengthPair]) -> bool:
    """Whether two corpora have to be compared at equal length and can be: some class has enough of both."""
    return not alike(lengths) and any(pair.shared for pair in lengths)
