"""Questions about the model's answer as plain data, checked: heads taken away, heads measured by it."""

from dataclasses import dataclass

from attnscope.errors import InputError
from attnscope.session.selection import check_seed

ARROWS = ("->", "→")
CONTROLS, TOP = 30, 10
PATCHING = "patching"
ESTIMATES = (PATCHING, "importance", "attention-gradient", "logit")
MOST_CONTROLS = 10_000
LAYER_CONTROLS = 20  # texts beside the answers of layers
OTHERS, _MOST = 10, 1000  # answers beside the one that is meant


@dataclass(frozen=True)
class Ablating:
    """What is done to heads, as the options of the same names.

    `replacement` is `zero`, `mean`, or a text whose outputs are put in. With `to` they are those of that text
    in every head in turn, and what is told is the way from one to the other. `by` is what `rank` goes by.
    """

    each: bool = False
    replacement: str | None = None
    link: str | None = None
    answer: str | None = None
    to: str | None = None
    rank: bool = False
    top: int | None = None
    controls: int | None = None
    seed: int = 0
    by: str | None = None

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.by is not None:
            self._check_estimate(self.by)
        if self.to is not None and self.replacement is not None:
            raise InputError("--to puts in what the heads answer to that text: leave --with out")
        if self.link is not None and (self.to is not None or self.replacement is not None):
            raise InputError("--link cuts a link and leaves the rest of a head: leave --with and --to out")
        if self.link is not None and self.rank:
            raise InputError("--rank foretells what replacing an output does: leave --link out")
        if self.top is not None and not self.rank:
            raise InputError(
                "--top is how many of the heads that --rank puts first are taken away: give --rank"
            )
        if self.top is not None and self.top < 1:
            raise InputError(f"--top is {self.top}: it takes at least 1")
        if self.controls is not None and self.method != "mean":
            raise InputError("--controls are the texts of a mean: it goes with --with mean, or with --rank")
        if self.controls is not None and not 1 <= self.controls <= MOST_CONTROLS:
            raise InputError(f"--controls {self.controls}: give 1 to {MOST_CONTROLS}")
        if self.link is not None:
            self.link_names  # noqa: B018 - refused in its words where it is none

    def _check_estimate(self, by: str) -> None:
        if not self.rank:
            raise InputError("--by is what --rank foretells effects by: give --rank")
        if by not in ESTIMATES:
            raise InputError(f"no estimate '{by}': {', '.join(ESTIMATES)}")
        if by != PATCHING and self.text is not None:
            raise InputError(f"--by {by} knows of no other text: it foretells what zeros do, or means")

    @property
    def method(self) -> str:
        """`zero`, `mean`, `text` or `link`; patching ranks by means unless something else is said."""
        if self.link is not None:
            return "link"
        if self.to is not None or self.replacement not in (None, "zero", "mean"):
            return "text"
        return self.replacement or ("mean" if self.rank and self.by in (None, PATCHING) else "zero")

    @property
    def told(self) -> str:
        """What is put in the place of what, in a few words."""
        if self.link is not None:
            return f"without {self.link}"
        if self.text is not None:
            return f"with outputs of {self.text}"
        return f"with {'zeros' if self.method == 'zero' else 'means'} for outputs"

    @property
    def text(self) -> str | None:
        """The text whose outputs are put in, None where there is none."""
        if self.to is not None:
            return self.to
        return None if self.replacement in (None, "zero", "mean") else self.replacement

    @property
    def link_names(self) -> tuple[str, str]:
        """The query and the key whose link is cut, as they were named."""
        assert self.link is not None, "asked only where there is one"
        for arrow in ARROWS:
            query, there, key = self.link.partition(arrow)
            if there and query.strip() and key.strip() and arrow not in key:
                return query.strip(), key.strip()
        raise InputError(f"--link '{self.link}' is no link: write it as \"query->key\", by text or position")


@dataclass(frozen=True)
class Layering:
    """Beside how many `controls`, texts with the words in other orders drawn with `seed`, layers answer."""

    controls: int = LAYER_CONTROLS
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.controls <= MOST_CONTROLS:
            raise InputError(f"--controls {self.controls}: give 0 to {MOST_CONTROLS}")
        check_seed(self.seed)


@dataclass(frozen=True)
class Attributing:
    """`answer` names the answer that is meant, by default the likeliest; `others` are drawn with `seed`."""

    answer: str | None = None
    others: int = OTHERS
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.others <= _MOST:
            raise InputError(f"others is {self.others}: other answers to hold it against are 0 to {_MOST}")
        check_seed(self.seed, "seed")
