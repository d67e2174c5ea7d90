"""Single texts of a corpus, and classes of texts of about one length: of both totals and results speak."""

from dataclasses import dataclass

from attnscope.results.base.parts import fits


@dataclass(frozen=True)
class CorpusText:
    """A text of a corpus: where it stands, its tokens as they were read, and how it begins.

    `whole` says that this is all of it, and that read alone it gives the same numbers.
    """

    place: str
    tokens: int
    text: str
    whole: bool = True


@dataclass(frozen=True)
class LengthClass:
    """Texts of `least` to `most` tokens: how many there are, and their tokens in all."""

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
