"""Options that belong together, as the commands get them: which model, which texts, which heads."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnscope.cli import options
from attnscope.cli.panels import SHOWN
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.model.loaded import Model
    from attnscope.results import HeadView, HeadWeights, MapSettings, Special

MASKED = "I was watching the door when [MASK] opened."
WHOLE = "I was watching the door when it opened."  # for a model that has no mask
SPECIAL = {name: name for name in ("show", "hide", "renormalise")} | {"renormalize": "renormalise"}
KINDS = ("encoder", "decoder", "cross")
KERNELS = (
    "eager",
    "sdpa",
    "flex_attention",
    "flash_attention_2",
    "flash_attention_3",
    "flash_attention_4",
)
ROUTES = {
    "takeover": "takeover",
    "custom": "custom name",
    "traced": "traced operations",
    "returned": "returned weights",
}  # as they are called in results
DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")


@dataclass(frozen=True)
class Request:
    """Which model to load, and how."""

    PANEL = "Which model, and how it runs"

    model: options.ModelName = None
    device: options.Device = "auto"
    dtype: options.Dtype = "float32"
    revision: options.Revision = None
    trust_remote_code: options.RemoteCode = False
    allow_pickle: options.AllowPickle = False
    attention: options.Attention = "eager"

    @property
    def loading(self) -> dict[str, Any]:
        """What loading a checkpoint that was found needs to know."""
        return {
            "device": self.device,
            "dtype": self.dtype,
            "remote_code": self.trust_remote_code,
            "attention": self.attention,
        }

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InputError(f"unknown dtype '{self.dtype}': {', '.join(DTYPES)}")
        if self.attention not in KERNELS:
            raise InputError(f"unknown attention kernel '{self.attention}': {', '.join(KERNELS)}")


@dataclass(frozen=True)
class Texts:
    """What the model reads: one text or a pair, and for an encoder-decoder what its decoder reads."""

    PANEL = "What is read"

    text: options.Text
    pair: options.Pair = None
    target: options.Target = None
    truncate: options.Truncate = False

    def read(self) -> tuple[str, ...]:
        """The text or the two of a pair, `-` from standard input; `InputError` for what is not UTF-8."""
        text = _standard_input() if self.text == "-" else self.text
        return tuple(decoded(each) for each in (text, self.pair) if each is not None)

    def suited(self, read: tuple[str, ...], model: "Model") -> tuple[str, ...]:
        """The texts as this model can read them."""
        return read


@dataclass(frozen=True)
class ArticleTexts(Texts):
    """Texts where none need be given: then the sentence of the articles."""

    text: options.ArticleText = None  # type: ignore[assignment]

    def read(self) -> tuple[str, ...]:
        return super().read() if self.text is not None else replace(self, text=MASKED).read()

    def suited(self, read: tuple[str, ...], model: "Model") -> tuple[str, ...]:
        return (WHOLE,) if self.text is None and model.tokenizer.mask_token is None else read


@dataclass(frozen=True)
class Wanted:
    """Which layers and heads of which kind of attention, as the user wrote them."""

    PANEL = "Which attention"

    layer: options.Layer = None
    head: options.Head = None
    kind: options.Kind = None
    tower: options.Tower = None
    block: options.Block = 0
    route: options.Route = None

    def __post_init__(self) -> None:
        if self.kind not in (None, *KINDS):
            raise InputError(f"no kind of attention '{self.kind}': {', '.join(KINDS)}")
        if self.route not in (None, *ROUTES):
            raise InputError(f"no route '{self.route}': {', '.join(ROUTES)}")


@dataclass(frozen=True)
class ArticleHead(Wanted):
    """One head, by default the one that the articles look at."""

    layer: options.OneLayer = "3"
    head: options.OneHead = "11"


@dataclass(frozen=True)
class Looking:
    """How to look at weights: by words instead of tokens, with special tokens or without."""

    PANEL = SHOWN

    words: options.Words = False
    special_tokens: options.SpecialTokens = "show"

    def __post_init__(self) -> None:
        if self.special_tokens.casefold() not in SPECIAL:
            raise InputError(f"--special is '{self.special_tokens}': {', '.join(list(SPECIAL)[:3])}")

    @property
    def changes(self) -> bool:
        """Whether weights are looked at in another way than by all tokens."""
        return self.words or self.special is not self.special.SHOW

    def at(self, head: "HeadWeights") -> "HeadView | None":
        """The weights of `head` looked at so; None where that is as they are."""
        from attnscope.analysis.views import viewed

        return viewed(head, words=self.words, special=self.special) if self.changes else None

    @property
    def special(self) -> "Special":
        from attnscope.results import Special

        return Special(SPECIAL[self.special_tokens.casefold()])


@dataclass(frozen=True)
class Mapping:
    """How to draw a map."""

    PANEL = "The map"

    perplexity: options.Perplexity = 5.0
    metric: options.Metric = "cosine"
    center_keys: options.CentreKeys = False
    seed: options.Seed = 0
    max_iter: options.MaxIter = None

    def settings(self) -> "MapSettings":
        """The same, checked; `InputError` for what cannot be."""
        from attnscope.results import MapSettings

        return MapSettings(self.metric, self.perplexity, self.seed, self.max_iter, self.center_keys)


def _standard_input() -> str:
    raw = sys.stdin.buffer.read() if sys.stdin else b""
    return raw.decode("utf-8", "surrogateescape").rstrip("\r\n")


def decoded(text: str) -> str:
    """`text` as it was meant; `InputError` when its bytes are not UTF-8."""
    try:
        # an argument that Python could not decode holds its bytes as surrogates
        return text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError as error:
        raise InputError("the text is not valid UTF-8") from error
