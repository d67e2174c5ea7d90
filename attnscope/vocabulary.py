"""The choices of the program as enums: kinds of attention, routes, units, stages, patterns.

Each stands here once; the command line, the session, files and messages take it from here. Nothing here
needs a heavy library.
"""

from enum import Enum, StrEnum

PASSAGES = "{passages}"  # where a prompt says that its passages stand


class Kind(StrEnum):
    """The kind of attention: within the encoder, within the decoder, or from decoder to encoder."""

    ENCODER = "encoder"
    DECODER = "decoder"
    CROSS = "cross"


class Route(StrEnum):
    """The route by which a layer's attention was read, best first (see `attnscope.capture`)."""

    TAKEOVER = "takeover"
    CUSTOM = "custom name"
    TRACED = "traced operations"
    RETURNED = "returned weights"

    @property
    def option(self) -> str:
        """The option value that selects the route: its first word."""
        return self.value.split()[0]


class Standing(StrEnum):
    """The evidence that position i of a layer stands for token i, best first.

    `own`: a query, key or value changes with its own token alone; `mixed`: with its own and with others, as
    behind a convolution; `unknown`: that was not found out; `other`: with other tokens and not with its own.
    """

    OWN = "own"
    MIXED = "mixed"
    UNKNOWN = "unknown"
    OTHER = "other"

    @property
    def rank(self) -> int:
        """The rank: 0 is best."""
        return list(Standing).index(self)


class Effect(StrEnum):
    """The effect of changing a head's output on its layer's result, best first.

    `own`: the layer's result changes, in the rows that asked and in no others; `some`: some of the rows have
    no effect; `unknown`: that was not tried or could not be told; `none`: nothing changes; `other`: other
    rows change, or another head's columns.
    """

    OWN = "own"
    SOME = "some"
    UNKNOWN = "unknown"
    NONE = "none"
    OTHER = "other"


class Special(StrEnum):
    """The treatment of special tokens: shown, hidden, or left out with rows renormalised."""

    SHOW = "show"
    HIDE = "hide"
    RENORMALISE = "renormalise"


class Unit(StrEnum):
    """The unit of rows and columns of weights: tokens, or groups of them.

    Weights are summed over the keys of a unit and averaged over the queries of one. How a text is cut into
    sentences and passages stands in `attnscope.results.base.groups`.
    """

    TOKEN = "token"
    WORD = "word"
    SENTENCE = "sentence"
    PASSAGE = "passage"

    @property
    def joins(self) -> bool:
        """Whether the unit groups tokens."""
        return self is not Unit.TOKEN

    @property
    def is_long(self) -> bool:
        """Whether the unit is a sentence or a passage, shown by number with its text cut."""
        return self in (Unit.SENTENCE, Unit.PASSAGE)

    @property
    def several(self) -> str:
        """The plural of the unit: `sentences`."""
        return f"{self.value}s"


class Stage(StrEnum):
    """The stage of a head to tabulate: `scores` are q.k, `scaled` is the softmax input."""

    WEIGHTS = "weights"
    SCORES = "scores"
    SCALED = "scaled"
    Q = "q"
    K = "k"
    V = "v"
    OUTPUT = "output"


class Scoring(StrEnum):
    """The function that scores a query with a key."""

    SCALED_DOT = "scaled-dot"
    DOT = "dot"
    ADDITIVE = "additive"


class Scaling(StrEnum):
    """The scale of a weight's shade: by default its square root, from 0 to 1.

    Else the weight itself, from 0 to 1, to the largest, or to the largest of its row; `log` goes to the
    largest in equal steps for equal ratios.
    """

    SQRT = "sqrt"
    ONE = "1"
    MAX = "max"
    ROW = "row"
    LOG = "log"


class Pool(StrEnum):
    """The value of a heatmap block of a long text: the mean or the largest weight."""

    MEAN = "mean"
    MAX = "max"


KERNELS = (
    "eager",
    "sdpa",
    "flex_attention",
    "flash_attention_2",
    "flash_attention_3",
    "flash_attention_4",
)
IN_PARTS = "some queries at a time"  # how the kernel of a long text ran, behind its name
IN_MEMORY = " (in memory)"  # behind the name of an adapter that no folder is known of
DTYPES = ("float32", "bfloat16", "float16", "float64", "auto")
MASKED_SENTENCE = "I was watching the door when [MASK] opened."  # of the articles that this project follows
THEATRE = "Bill is going to the theatre to watch a new movie"  # which one head is worked out for, by hand
WHOLE_SENTENCE = "I was watching the door when it opened."  # the same for a model that has no mask


class Pattern(StrEnum):
    """A rule that picks keys for each query, in place of one named query and key.

    `same` are other places with the query's own token; `induction` are the tokens that followed an earlier
    one of these (Olsson et al. 2022).
    """

    PREVIOUS = "previous"
    NEXT = "next"
    SELF = "self"
    FIRST = "first"
    SAME = "same"
    INDUCTION = "induction"
    PUNCTUATION = "punctuation"
    SPECIAL = "special"

    @property
    def of_places(self) -> bool:
        """Whether the pattern depends on positions alone, so that exchanged words do not change it."""
        return self in (Pattern.PREVIOUS, Pattern.NEXT, Pattern.SELF, Pattern.FIRST, Pattern.SPECIAL)


class Purpose(Enum):
    """The purpose a model is loaded for, which decides the parts it needs."""

    ATTENTION = "the layers up to the last of the chosen ones, and no head that predicts"
    ATTENTION_AND_ANSWER = "the whole of it, with the head that it predicts with where it has one"
    ANSWER = "the whole of it, with the head that it predicts with: refused where it has none"
    ANSWER_OR_CLASS = "the same, or with the head that tells classes or tags: refused where it has neither"
    ANSWER_OR_VECTOR = "the same, and where it has neither the whole of it, whose vectors are looked at"
    EVERYTHING = "the whole of it, with the head that it was saved with where that is there"
    ANYTHING = "the whole of it, with the head that it predicts with, or else the one that it was saved with"
