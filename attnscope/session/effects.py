"""Questions about the model's answer as plain data, checked: heads taken away, heads measured by it."""

from dataclasses import dataclass

from attnscope.errors import InputError
from attnscope.session.selection import check_seed

ARROWS = ("->", "→")
PARTS = ("head", "mlp", "attention", "residual", "position")
EACH = "pos:each"  # every token by itself
CONTROLS, TOP = 30, 10
PATCHING = "patching"
ESTIMATES = (PATCHING, "importance", "attention-gradient", "logit")
MOST_CONTROLS = 10_000
LAYER_CONTROLS = 20  # texts beside the answers of layers
OTHERS, _MOST = 10, 1000  # answers beside the one that is meant


@dataclass(frozen=True)
class Ablating:
    """What is done to heads, as the options of the same names.

    `replacement` is `zero`, `mean`, or a text whose outputs are put in. With `patch_from` they are those of
    that text in every head in turn, and what is told is the way from one to the other. `by` is what `rank`
    goes by. `part` is what is changed, `at` the tokens at which, `against` what the answer is held against.
    What is changed comes to the heads `via` alone. `query` is the token whose tag is meant, of a tagger.
    """

    each: bool = False
    replacement: str | None = None
    link: str | None = None
    answer: str | None = None
    patch_from: str | None = None
    rank: bool = False
    top: int | None = None
    controls: int | None = None
    seed: int = 0
    by: str | None = None
    part: str = "head"
    at: str | None = None
    against: str | None = None
    via: str | None = None
    query: str | int | None = None

    def __post_init__(self) -> None:
        check_seed(self.seed)
        self._check_part()
        if self.by is not None:
            self._check_estimate(self.by)
        if self.patch_from is not None and self.replacement is not None:
            raise InputError("--patch-from puts in what that text has there: leave --with out")
        if self.link is not None and (self.patch_from is not None or self.replacement is not None):
            raise InputError(
                "--link cuts a link and leaves the rest of a head: leave --with and --patch-from out"
            )
        if self.link is not None and self.rank:
            raise InputError("--rank foretells what replacing an output does: leave --link out")
        if self.link is not None and self.at is not None:
            raise InputError("--link names its tokens itself: leave --at out")
        if self.rank and self.against is not None:
            raise InputError("--rank foretells the probability of one answer: leave --against out")
        if self.rank and self.at is not None:
            raise InputError("--rank foretells what replacing an output everywhere does: leave --at out")
        if self.rank and self.via is not None:
            raise InputError("--rank foretells what replacing an output does by all ways: leave --via out")
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

    def _check_part(self) -> None:
        if self.part not in PARTS:
            raise InputError(f"no part '{self.part}': {', '.join(PARTS)}")
        if self.part == "head":
            return
        if self.rank:
            raise InputError(f"--rank foretells what heads do: leave it out with --part {self.part}")
        if self.link is not None and self.part != "attention":
            raise InputError(
                f"--link is cut in heads: leave --part {self.part} out, or give --part attention"
            )
        if self.part == "position" and (self.replacement, self.patch_from) != (None, None):
            how = "in the place of a position's vector stands the mean of the others"
            raise InputError(f"{how}: leave --with and --patch-from out")

    @property
    def places(self) -> bool:
        """Whether something else than heads is changed, or token by token."""
        each_key = self.link is not None and self.link_names[1] == EACH
        return self.part != "head" or self.at is not None or each_key

    def check_wanted(self, layers: object, heads: object) -> None:
        """Raises `InputError` for layers or heads that are named and are no part of what is changed."""
        if heads is not None and self.part != "head":
            raise InputError(f"--part {self.part} is no head's: leave --head out")
        if layers is not None and self.part == "position":
            raise InputError("a position's vector is added before the first layer: leave --layer out")

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
        if self.patch_from is not None or self.replacement not in (None, "zero", "mean"):
            return "text"
        return self.replacement or ("mean" if self.rank and self.by in (None, PATCHING) else "zero")

    @property
    def told(self) -> str:
        """What is put in the place of what, in a few words."""
        only = "" if self.via is None else f", for {self.via} only"
        if self.link is not None:
            return f"without {self.link}{only}"
        if self.text is not None:
            return f"with outputs of {self.text}{only}"
        return f"with {'zeros' if self.method == 'zero' else 'means'} for outputs{only}"

    @property
    def over_prompts(self) -> str | None:
        """What is asked of many prompts together; None where each is answered by itself."""
        return None if self.at is not None or self.part != "head" else self.told

    @property
    def text(self) -> str | None:
        """The text whose outputs are put in, None where there is none."""
        if self.patch_from is not None:
            return self.patch_from
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
