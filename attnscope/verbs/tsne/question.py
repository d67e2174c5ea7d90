"""Map a head's queries and keys, and say how far to trust it.

Distance in the map is not attention: the figures beside it say for which heads the two agree.
With --words a point is a word, the mean of its pieces; --query, --compare-query and --key name words.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import Question
from attnscope.session.wanted import KEY, QUERY
from attnscope.session.which import Looked, Name, OneHead

if TYPE_CHECKING:
    from attnscope.results import MapSettings, Projection  # noqa: F401

_MAP = "The map"

COMPARE_QUERY = option(
    "--compare-query", metavar="TOKEN", help="A second query beside --query, in a panel of its own.",
    brief="a second query beside --query, in its own panel",
)  # fmt: skip
PERPLEXITY = option(
    "--perplexity", metavar="P", panel=_MAP,
    help="t-SNE's perplexity, lowered for few tokens.", brief="t-SNE's perplexity, lowered for few tokens",
)  # fmt: skip
METRIC = option(
    "--metric", metavar="cosine|euclidean", panel=_MAP, help="Distance in the full space."
)  # fmt: skip
SEED = option(
    "--seed", metavar="N", panel=_MAP,
    help="Seed of t-SNE, which starts from a PCA, so that it seldom matters.",
)  # fmt: skip
MAX_ITER = option(
    "--max-iter", metavar="N", panel=_MAP, large=True,
    help="Most iterations of t-SNE, which stops by itself where it has settled. Default: 20000, above 256 "
    "points 1000; the answer says where it has not settled.",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """How a map of queries and keys is drawn."""

    BEYOND: ClassVar[str] = "the map"

    perplexity: Annotated[float, PERPLEXITY] = 5.0
    metric: Annotated[str, METRIC] = "cosine"
    seed: Annotated[int, SEED] = 0
    max_iter: Annotated[int | None, MAX_ITER] = None

    @property
    def settings(self) -> "MapSettings":
        """All of it, checked; `InputError` for what cannot be."""
        from attnscope.results import MapSettings

        return MapSettings(self.metric, self.perplexity, self.seed, self.max_iter)


@dataclass(frozen=True)
class Map(Looked, Mapped, OneHead, Question["Projection"]):
    """The queries and keys of one head in one map, with figures that say how far it can be trusted.

    Points lie by t-SNE of distances by `metric` (cosine, euclidean) at this `perplexity`, with at most
    `max_iter` iterations. With `words` a point is a word, the mean of its pieces, and so is a `query`, a
    second one (`compare_query`) or a `key` of several tokens; `special` tokens may be left out.
    """

    METHODS = ("Reading.tsne",)
    KIND, WRITES, ARTICLE, DRAWS = "Projection", True, True, True
    ANSWER = "attnscope.verbs.tsne.answer:map_of"
    NAMES = "attnscope.session.opening:check_link"

    _: KW_ONLY
    query: Annotated[Name | None, QUERY] = None
    compare_query: Annotated[Name | None, COMPARE_QUERY] = None
    key: Annotated[Name | None, KEY] = None

    def __post_init__(self) -> None:
        if self.query is None and (self.compare_query is not None or self.key is not None):
            raise InputError("--compare-query and --key go with --query: name a query")
        super().__post_init__()


FORMS = (Map,)
