"""The table of measures; a new one is a function, an entry, and a test."""

from collections.abc import Iterator, Sequence

from attnscope.errors import InputError, nearest
from attnscope.measures import apart, rows
from attnscope.measures.measure import Measure, Need, by_norm, larger, mass_on
from attnscope.register import entry_points
from attnscope.results import MeasureDescription

_CLARK = "Clark et al. 2019, What Does BERT Look At?"
_XIAO = "Xiao et al. 2023, Efficient Streaming Language Models with Attention Sinks"
_VOITA = "Voita et al. 2019, Analyzing Multi-Head Self-Attention"

# of the weights themselves
_WEIGHED = (
    Measure(
        MeasureDescription(
            name="entropy",
            unit="nats",
            meaning="How evenly a query spreads its weight over the keys.",
            paper=_CLARK,
            most="ln keys",
            low="looks at one key",
            high="at all alike",
            strong="low",
            strongest="most focused head of each layer",
        ),
        rows.entropy,
        brief=True,
    ),
    Measure(
        MeasureDescription(
            name="confidence",
            unit="weight",
            meaning="Mean of the largest weight of each query.",
            paper=_VOITA,
            label="largest weight",
            low="spread thin",
            high="all on one key",
            strongest="most confident head of each layer",
        ),
        rows.confidence,
        combine=larger,
        brief=True,
    ),
    Measure(
        MeasureDescription(
            name="distance",
            unit="tokens",
            meaning="Mean distance from a query to its keys, weighted by attention.",
            paper="Vig and Belinkov 2019, Analyzing the Structure of Attention",
            most="keys - 1",
            low="on the query itself",
            high="from end to end",
            strongest="head of each layer that looks farthest",
        ),
        rows.distance,
        positional=True,
        brief=True,
    ),
    mass_on(
        "itself",
        "self",
        rows.on_offset(0),
        _CLARK,
        meaning="Mean weight of a query on itself.",
        positional=True,
        brief=True,
    ),
    mass_on("the previous token", "previous", rows.on_offset(-1), _CLARK, positional=True, brief=True),
    mass_on("the next token", "next", rows.on_offset(1), _CLARK, positional=True, brief=True),
    mass_on("the first key", "first", rows.on_first, _XIAO, brief=True),
    mass_on(
        "the first token, from all later ones",
        "sink",
        rows.on_sink,
        _XIAO,
        meaning="Mean weight on the first token, of the later queries that may look there.",
        positional=True,
    ),
    mass_on(
        "special tokens",
        "special-tokens",
        rows.on_special,
        _CLARK,
        needs=frozenset({Need.SPECIAL}),
    ),
    mass_on(
        "punctuation",
        "punctuation",
        rows.on_punctuation,
        _CLARK,
        needs=frozenset({Need.PUNCTUATION}),
    ),
    mass_on(
        "the same token elsewhere",
        "same",
        rows.on_alike,
        apart.OLSSON,
        positional=True,
        needs=frozenset({Need.ALIKE}),
    ),
    Measure(
        MeasureDescription(
            name="evenness",
            unit="of ln keys",
            meaning="Entropy over ln of the keys that the query may see; queries that see one do not count.",
            paper=f"{_CLARK} (entropy); Pielou 1966",
            label="entropy over its largest",
            low="looks at one key",
            high="at all alike",
            strong="low",
            strongest="most focused head of each layer",
        ),
        rows.evenness,
        needs=frozenset({Need.ALLOWED}),
    ),
    Measure(
        MeasureDescription(
            name="fixed",
            unit="of queries",
            meaning="Share of queries whose strongest key stands at one and the same offset.",
            paper=_VOITA,
            label="strongest key at one offset",
            low="anywhere",
            high="always there",
            strongest="most positional head of each layer",
        ),
        rows.strongest,
        combine=rows.stronger,
        finish=rows.share_at_one_offset,
        positional=True,
    ),
    Measure(
        MeasureDescription(
            name="offset",
            unit="tokens",
            meaning="That offset: where the strongest key stands from most queries, negative before them.",
            paper=_VOITA,
            label="where the strongest key stands",
            least="1 - keys",
            most="keys - 1",
            low="far before",
            high="far behind",
            strongest="head of each layer that looks farthest behind",
            signed=True,
        ),
        rows.strongest,
        rows.stronger,
        finish=rows.most_frequent_offset,
        positional=True,
    ),
)

# of the same run, but not of weights alone
_OF_THIS_TEXT = (
    Measure(
        MeasureDescription(
            name="moved",
            unit="hidden units",
            meaning="Mean over queries of weight x ||f(x)||, f the value through the output projection.",
            paper="Kobayashi et al. 2020, Attention is Not Only a Weight",
            most="any",
            low="moves nothing",
            high="moves most here",
            strongest="head of each layer that moves most",
        ),
        rows.moved,
        needs=frozenset({Need.NORMS}),
    ),
    Measure(
        MeasureDescription(
            name="near",
            unit="rank correlation",
            meaning="Rank correlation of score and cosine distance, over all pairs: -1 where near attends.",
            paper="Yeh et al. 2023, AttentionViz (there of dot products)",
            label="score by distance",
            least="-1",
            low="near attends",
            high="far attends",
            strong="low",
            strongest="head of each layer in which near most attends",
            signed=True,
        ),
        rows.pairs,
        rows.more,
        needs=frozenset({Need.SCORES, Need.ALLOWED}),
        finish=rows.rank_correlation,
    ),
    Measure(
        MeasureDescription(
            name="pattern",
            unit="class",
            meaning=(
                f"A column, a diagonal, both, the query's own text, or mixed: from {rows.ALONE} over even "
                f"weights, both from {rows.BESIDE}."
            ),
            paper="classes: Kovaleva et al. 2019, Revealing the Dark Secrets of BERT; thresholds: ours",
            label="what the weights look like",
            most=str(len(rows.CLASSES) - 1),
            low=rows.CLASSES[0],
            high=rows.CLASSES[-1],
            strongest="a head of each layer with a column, or else the next class",
            classes=rows.CLASSES,
        ),
        rows.features,
        rows.both,
        positional=True,
        needs=frozenset({Need.ALLOWED}),
        finish=rows.classified,
    ),
)


def _of_others() -> Iterator[Measure]:
    """Measures from other packages through the entry point `attnscope.measures`."""
    for point in entry_points("attnscope.measures"):
        try:
            found = point.load()
            found = [found] if isinstance(found, Measure) else list(found)
            if other := [each for each in found if not isinstance(each, Measure)]:
                raise TypeError(f"{other[0]!r} is no Measure")
            yield from found
        except Exception as error:
            of = f"{point.dist.name} {point.dist.version}"
            _BROKEN[point.name] = (
                f"{point.name} is of {of}, and that is broken: {type(error).__name__}: {error}"
            )


_BROKEN: dict[str, str] = {}
_ALL = (*_WEIGHED, *map(by_norm, _WEIGHED), *_OF_THIS_TEXT, *apart.APART, *apart.OF_ANSWERS)
MEASURES = {each.name: each for each in _ALL}
MEASURES |= {each.name: each for each in _of_others() if each.name not in MEASURES}
_KNOWN = {Need.ALLOWED, Need.SPECIAL, Need.PUNCTUATION, Need.ALIKE, Need.NORMS}
NORM = "-norm"


def parse_measures(text: str) -> tuple[str, ...]:
    """Names of measures from a comma-separated list or `all`; `InputError` for an unknown name.

    `all` are the measures taken from the one run over the text.

    """
    names = [name.strip() for name in text.split(",")]
    if names == ["all"]:
        return tuple(name for name, each in MEASURES.items() if not each.description.apart)
    for name in names:
        if name not in MEASURES:
            if name in _BROKEN:
                raise InputError(_BROKEN[name])
            near = ", ".join(nearest(name, MEASURES, 3, 0.0))
            raise InputError(
                f"no measure '{name}': the nearest are {near}; attnscope measures --all lists "
                f"all {len(MEASURES)}"
            )
    return tuple(dict.fromkeys(names))


def measurable(names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that can be measured over a corpus, in order."""
    return tuple(name for name in names if MEASURES[name].needs <= _KNOWN)


def check_measurable(names: Sequence[str]) -> None:
    """Raises `InputError` for a measure that cannot be taken over a corpus."""
    if others := [name for name in names if name not in measurable(names)]:
        there = ", ".join(measurable(tuple(MEASURES)))
        raise InputError(f"no {', '.join(others)} over a corpus: what can be measured is {there}")


def needs_norms(names: Sequence[str]) -> bool:
    """Whether any of the measures needs the output projection (norms of f(x))."""
    return any(Need.NORMS in MEASURES[name].needs for name in names)


# a is the weight of query q on key k, mean the mean over queries
FORMULAS = {
    "entropy": "mean of -sum_k a ln a",
    "confidence": "mean of max_k a",
    "distance": "mean of sum_k a |k - q|",
    "self": "mean of a at k = q",
    "previous": "mean of a at k = q - 1, over q that may look there",
    "next": "mean of a at k = q + 1, over q that may look there",
    "first": "mean of a at k = 0, over q that may look there",
    "sink": "mean of a at k = 0, over q > 0 that may look there",
    "special-tokens": "mean of sum_k a, over special k, of q that may look at one",
    "punctuation": "mean of sum_k a, over k that are punctuation, of q that may look at one",
    "same": "mean of sum_k a, over k other than q with the token of q, of q that may look at one",
    "evenness": "mean of (-sum_k a ln a) / ln(keys that q may see)",
    "fixed": "largest share of queries with one and the same (argmax_k a) - q",
    "offset": "the most frequent (argmax_k a) - q",
    "moved": "mean of sum_k a |f(x_k)|",
    "near": "Spearman's rho of 1 - cos(q, k) and q.k after scaling, over all pairs",
    "pattern": "(x - x of even weights) / (1 - x of even weights), x the largest mean of a column, the "
    "largest mean at one k - q from -2 to 2, and the mean of sum_k a over k of the text of q",
    "induction": "mean of a at k = q - n + 1, over the second half of n random tokens read twice",
    "duplicate": "mean of a at k = q - n, over the second half of n random tokens read twice",
    "previous-random": "mean of a at k = q - 1, over the second half of n random tokens read twice",
    "copying": "sum_i Re(l_i) / sum_i |l_i|, l the eigenvalues of W_E W_V W_O W_U",
    "importance": "|sum_q o_q . dL/do_q|, L = -ln p of the answer, o the head's output",
    "attention-gradient": "sum_q sum_k a dy/da, y = ln p of the answer",
    "attention-gradient-positive": "sum_q sum_k max(0, a dy/da), y = ln p of the answer",
    "logit": "sum_q o_q . dz/do_q along the straight way, z the answer's logit less the mean of all",
}


def formula(measure: str) -> str:
    """The formula of a measure as text; `KeyError` for an unknown measure."""
    plain = measure.removesuffix(NORM)
    if plain == measure:
        return FORMULAS[measure] if measure in FORMULAS else MEASURES[measure].description.meaning
    return f"{FORMULAS[plain]}; a |f(x_k)| / sum_k a |f(x_k)| in place of a"
