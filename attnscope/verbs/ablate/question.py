"""Take heads away: what the answer becomes, beside others.

Each effect stands beside what random heads and rounding do. The answer is the word of the first [MASK],
the next token, the verdict on a pair, the text that an encoder-decoder writes (or --target), the class,
or the tag of a token (--from).
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import Question, named
from attnscope.session.selection import check_controls
from attnscope.session.wanted import APART, HEADS, LAYERS, Numbers
from attnscope.session.which import Heads, Name
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.verbs.ablate.result import Ablation

ARROWS = ("->", "→")
PARTS = ("head", "mlp", "attention", "residual", "position")
EVERY_TOKEN = "pos:each"  # by itself
MEAN_OVER, TAKEN = 30, 10  # shuffled texts; heads that are ranked first
PATCHING = "patching"
ESTIMATES = (PATCHING, "importance", "attention-gradient", "logit")

EACH = option(
    "--each",
    help="Take the chosen heads away one after the other only, and not all at once as well. So it is "
    "where neither --layer nor --head is given.",
)  # fmt: skip
WITH = option(
    "--with", metavar="zero|mean",
    help="What stands in the place of what is taken away: zeros, or its mean over shuffled texts. "
    "Default: zero; with --rank mean, unless --by is given.",
)  # fmt: skip
LINK = option(
    "--link", metavar="QUERY->KEY", former=("--edge",),
    help="Cut this link before the softmax and leave the rest of a head: two tokens or spans, such as "
    '"[MASK]->the door": every one of the first from every one of the second.',
    brief='cut this one link: "[MASK]->door"', brief_metavar="FROM->TO",
)  # fmt: skip
MEANT = option(
    "--answer", metavar="WORD",
    help="The answer whose probability is meant: a word, a class, a tag, follows. Of several tokens the "
    "probabilities are multiplied, each given those before. Default: the likeliest one.",
    brief="whose probability is meant; default: the likeliest",
)  # fmt: skip
PATCH_FROM = option(
    "--patch-from", metavar="TEXT", former=("--to",),
    help="Put in what this text, of as many tokens, has there, and show how much of the way from one "
    "answer to the other each makes (activation patching); with --part in both directions.",
)  # fmt: skip
RANK = option(
    "--rank",
    help="Foretell what every head does from one backward pass, then really take the first ones away.",
)  # fmt: skip
TOP = option("--top", "-k", metavar="N", help="How many of them --rank takes away. Default: 10.")
CONTROLS = option("--controls", metavar="N", help="Shuffled texts that a mean is over. Default: 30.")
SEED = option("--seed", metavar="N", help="Seed of shuffled texts and random heads.")
BY = option(
    "--by", metavar="patching|importance|attention-gradient|logit",
    help="What --rank foretells by: attribution patching, or a measure of `heads --measure`. "
    "Default: patching.",
)  # fmt: skip
PART = option(
    "--part", metavar="head|mlp|attention|residual|position",
    help="What is taken away: heads, MLPs, all heads of a layer, what a layer hands on, or the learned "
    "vector of a position, in whose place the mean of the others stands. By layer; with --at by token.",
    brief="mlp, attention, residual or position", brief_metavar="PART",
)  # fmt: skip
AT = option(
    "--at", metavar="TOKEN",
    help="Change it at this token or span alone; pos:each is every token by itself, layer by layer. "
    "Default: all tokens.",
    brief="at this token alone; pos:each: at each of them",
)  # fmt: skip
AGAINST = option(
    "--against", metavar="WORD|TEXT",
    help="Measure how far the answer's logit lies above this other answer's. Of a model without any "
    "head: the cosine of the text's vector to that of this text.",
)  # fmt: skip
VIA = option(
    "--via", metavar="L3H11|direct",
    help="Let only these later heads read what is changed: what of it comes to the answer through them "
    "alone (path patching). L3H11, L3H11.q by its queries (k, v), L3, all, or direct, past all heads.",
    brief="what comes to the answer through this head alone", brief_metavar="HEAD",
)  # fmt: skip
TAGGED = option(
    "--from", "--query", metavar="TOKEN",
    help="The token whose tag is the answer, of a model that tags tokens. Default: the one whose tag is "
    "surest.",
)  # fmt: skip


@dataclass(frozen=True)
class Ablate(Heads, Question["Ablation"]):
    """What the model's answer becomes without heads, by default without `each` of them in turn.

    The answer is the model's own or the `answer` that is named; a change is of the logarithm of its
    probability, in nats, and stands beside what other heads, by default all of the layer, do. In the place of
    their outputs stand zeros, or as `replacement` "mean", over `controls` shuffled texts, or another text;
    `link` ("it->door") cuts one link. With `patch_from` every head is patched from that text, with `rank`
    heads are ranked by one backward pass and the `top` ones taken away. `heads` may be of several layers,
    "L1H10,L2H3"; `by` is what ranks, "patching", "importance", "attention-gradient" or "logit". `part` takes
    something else away, "mlp", "attention", "residual" or "position", at all tokens or `at` some, "pos:each"
    for each by itself. `against` is another answer, above which the logit of this one is measured; of a model
    without any head a text whose vector this one's is held against. `via` ("L3H11", "L3H11.q", "direct") lets
    only these heads read what is changed. `query` is the token whose tag is the answer, of a model that tags
    tokens.
    """

    METHODS = ("Reading.ablate", "Prompted.ablate")
    KIND, TAKES, PURPOSE = "Ablation", APART, Purpose.ANSWER_OR_VECTOR
    RANKS = whole = True
    ANSWER = "attnscope.verbs.ablate.answer:ablate"
    NAMES = "attnscope.verbs.ablate.places:names_of"

    layers: Annotated[Numbers, LAYERS] = None
    heads: Annotated[Numbers, HEADS] = None
    _: KW_ONLY
    each: Annotated[bool, EACH] = False
    replacement: Annotated[str | None, WITH] = None
    link: Annotated[str | None, LINK] = None
    answer: Annotated[str | None, MEANT] = None
    patch_from: Annotated[str | None, PATCH_FROM] = None
    rank: Annotated[bool, RANK] = False
    top: Annotated[int | None, TOP] = None
    controls: Annotated[int | None, CONTROLS] = None
    seed: Annotated[int, SEED] = 0
    by: Annotated[str | None, BY] = None
    part: Annotated[str, PART] = "head"
    at: Annotated[str | None, AT] = None
    against: Annotated[str | None, AGAINST] = None
    via: Annotated[str | None, VIA] = None
    query: Annotated[Name | None, TAGGED] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_part()
        if self.by is not None and not self.rank:
            raise InputError("--by is what --rank foretells effects by: give --rank")
        if self.by is not None and self.by not in ESTIMATES:
            raise InputError(f"no estimate '{self.by}': {', '.join(ESTIMATES)}")
        if self.by not in (None, PATCHING) and self.text is not None:
            raise InputError(f"--by {self.by} knows of no other text: it foretells what zeros do, or means")
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
        if self.controls is not None:
            check_controls(self.controls)
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
        if self.wanted.head is not None:
            raise InputError(f"--part {self.part} is no head's: leave --head out")
        if self.wanted.layer is not None and self.part == "position":
            raise InputError("a position's vector is added before the first layer: leave --layer out")

    def found(self, reading: Any, chosen: Any) -> Any:
        every = self.wanted.layer is None and self.wanted.head is None
        return named(self.ANSWER)(reading, chosen, replace(self, each=self.each or every))

    def ranked(self, result: "Ablation") -> bool:
        return bool(result.heads)

    @property
    def over(self) -> str | None:
        if self.at is not None or self.part != "head":
            return None
        only = "" if self.via is None else f", for {self.via} only"
        if self.link is not None:
            return f"without {self.link}{only}"
        if self.text is not None:
            return f"with outputs of {self.text}{only}"
        return f"with {'zeros' if self.method == 'zero' else 'means'} for outputs{only}"

    @property
    def places(self) -> bool:
        """Whether something else than heads is changed, or token by token."""
        each_key = self.link is not None and self.link_names[1] == EVERY_TOKEN
        return self.part != "head" or self.at is not None or each_key

    @property
    def method(self) -> str:
        """`zero`, `mean`, `text` or `link`; patching ranks by means unless something else is said."""
        if self.link is not None:
            return "link"
        if self.text is not None:
            return "text"
        return self.replacement or ("mean" if self.rank and self.by in (None, PATCHING) else "zero")

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


FORMS = (Ablate,)
