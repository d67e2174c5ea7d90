"""One result of every kind and of every odd sort that a file has to hold, by name."""

import math
from collections.abc import Callable
from dataclasses import replace

import cases_ablate
import cases_align
import cases_check
import cases_cite
import cases_compare
import cases_compose
import cases_contributions
import cases_dependencies
import cases_difference
import cases_dimensions
import cases_drift
import cases_explain
import cases_find
import cases_flow
import cases_layers
import cases_links
import cases_long
import cases_media
import cases_prompts
import cases_retrieval
import cases_senses
import cases_thumbnails
import cases_why
import made_corpus
import made_outlines
import made_reports
import made_results as made
import numpy as np

from attnscope.analysis.heads.overview import viewed_overview
from attnscope.analysis.heads.projection import points_of
from attnscope.analysis.heads.view import viewed
from attnscope.results import (
    Certificate,
    Fault,
    HeadAttention,
    HeadTerms,
    HeadWeights,
    Influence,
    Kind,
    MeasureDescription,
    NextSentence,
    Overview,
    Pattern,
    Projection,
    Report,
    Result,
    Special,
    Verdict,
)
from attnscope.results.claims.prompts import Asked
from attnscope.results.steps import Given
from attnscope.tokens import Token, Tokens
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.examples import example, look_up, scale_study
from attnscope.verbs.sdpa.mistakes import mistaken
from attnscope.verbs.sdpa.result import Scoring, Worked
from attnscope.vocabulary import Pool, Unit

HALF = "half \ud83d of one \\ud83d"


def infinite() -> Certificate:
    """A failed certificate whose errors are infinite where another has NaN."""
    faults = (Fault("mask dropped", math.inf, math.nan, math.inf), Fault("sink dropped", 0.5, -math.inf, 2.0))
    inf = math.inf
    return Certificate(Verdict.FAILED, inf, 5e-7, math.nan, inf, "float32", faults, "not the model's")


def sinking() -> HeadAttention:
    """A causal head with a sink of every query's own, a soft cap and terms, one of them a mask of -inf."""
    plain = made.head(causal=True, kind=Kind.DECODER, demo=True)
    mask = np.where(plain.allowed, 0.0, -np.inf)
    terms = {"alibi/slope ~1": np.arange(13.0) - np.arange(13.0)[:, None], "mask": mask}
    more = {"softcap": 30.0, "sink_by_query": True, "window": 12, "notes": ("odd",), "terms": terms}
    place = {"tower": "text_model", "block": 1, "blocks": 3}
    return replace(made_reports.with_sink(plain), certificate=infinite(), **more, **place)


def returned() -> HeadWeights:
    """Weights that a model returned, whose rows sum to what they like."""
    full = vars(made.head(made.DOOR, empty=[2], verdict=Verdict.UNCERTIFIED))
    fields = {name: full[name] for name in HeadWeights.__dataclass_fields__}
    return HeadWeights(**{**fields, "weights": full["weights"] * 0.9, "notes": ("summed over keys",)})


def pieces() -> Tokens:
    """A text that is cut into pieces of words, the last of it written by the model."""
    plain = made.tokens(made.DOOR)
    items = tuple(
        replace(item, word=None if item.word is None else item.word // 2, part=1) for item in plain.items
    )
    return Tokens(("a question", *plain.texts), items, written="greedily")


def of_pieces() -> HeadAttention:
    tokens = pieces()
    return made.head(query_tokens=tokens, key_tokens=tokens)


def numbered() -> HeadAttention:
    """Some queries of a longer input over tokens with half a character; equal, and yet not the same."""
    numbers = (3, *range(7, 19))
    tokens = replace(made.tokens(made.DOOR), numbers=numbers)
    tokens = replace(tokens, texts=(*tokens.texts, HALF))
    odd = Token(-1, HALF, HALF, (0, 3), 0, part=1, unknown=True)
    tokens = replace(tokens, items=(odd, *tokens.items[1:]))
    return made.head(query_tokens=tokens, key_tokens=replace(tokens))


def terms(*, sink: bool = True) -> HeadTerms:
    head = sinking() if sink else made.head()
    scaled = head.scores * head.scale
    capped = scaled if head.softcap is None else 30 * np.tanh(scaled / 30)
    sinks = np.where(np.arange(13) == 4, -np.inf, 0.5) if sink else None
    parts = (Influence("q·k x scale", 0.1, -2.5, math.inf, 0.25, 0.75), Influence("mask", *[math.nan] * 5))
    normaliser = np.where(np.arange(13) == 2, np.nan, 1.5)
    return HeadTerms(head, scaled, capped, sinks, normaliser, parts)


def several_measures() -> Overview:
    """Three measures, of which one has no meaning, and a head that looks at nothing."""
    plain = made.overview(2, 3, made.AWKWARD, verdicts={(1, 2): Verdict.FAILED, (0, 1): Verdict.INCONCLUSIVE})
    entropy = plain.scores["entropy"]
    nothing = np.full((2, 3), np.nan)
    described = MeasureDescription(name="made up", unit="", meaning="", most="∞", strong="high")
    measures = {
        "self": made.scores("self", nothing, absent="queries and keys are not the same tokens"),
        "entropy": replace(entropy, even_attention=nothing + 1),
        "made up": replace(entropy, description=described, limits=(-1.0, 3.5)),
    }
    plain.strongest[0, 0], plain.strongest_weight[0, 0] = -1, np.nan
    return replace(plain, scores=measures, sharing=(1, 4), tower="vision", notes=("odd",))


def of_sentences() -> HeadAttention:
    """A head over two sentences and what was put around them, a mask in the second."""
    text = "A dog slept. [MASK] sat here."
    spans = ((0, 1), (2, 5), (6, 11), (11, 12), (13, 19), (20, 23), (24, 28), (28, 29))
    items = [
        Token(5 + i, text[slice(*span)], text[slice(*span)], span, i, special=i == 4)
        for i, span in enumerate(spans)
    ]
    around = [Token(i, name, "", None, None, special=True) for i, name in enumerate(("[CLS]", "[SEP]"))]
    tokens = Tokens((text,), (around[0], *items, around[1]))
    return replace(made.head([*"0123456789"]), query_tokens=tokens, key_tokens=tokens)


def overview_of_pieces() -> Overview:
    tokens = pieces()
    return replace(made.overview(2, 3), query_tokens=tokens, key_tokens=tokens)


def report(view: bool = True, **changed: object) -> Report:
    head = of_pieces() if view else sinking()
    seen = viewed(head, by=Unit.WORD, special=Special.RENORMALISE) if view else None
    prediction = made_reports.masked(head, [4, 6], verdict=0.25)
    return made_reports.report(head, prediction=prediction, view=seen, **changed)


def projected() -> Worked:
    """X with its matrices, a bias and the way back; rows are tokens, called alike as queries and keys."""
    random = np.random.default_rng(2)
    shapes = {"x": (3, 4), "wq": (4, 2), "wk": (4, 2), "wv": (4, 5), "bv": (1, 5), "wo": (5, 4)}
    given = {name: Given(random.normal(size=shape)) for name, shape in shapes.items()}
    return work_out(given, names={"token_names": ("the", "cat", "sat")}, name="made")


def causal_numbers() -> Worked:
    given = {name: Given(np.array(rows)) for name, rows in (
        ("q", [[1.0, 0.5], [0.0, 2.0]]), ("k", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        ("v", [[1.0], [3.0], [5.0]]),
    )}  # fmt: skip
    return work_out(given, causal=True, name="made", scoring=Scoring.SCALED_DOT)


def next_sentence() -> object:
    plain = made_reports.masked(made.head(), [], verdict=0.5)
    return replace(plain, next_sentence=NextSentence(math.nan, order=True))


def projection_of_terms() -> object:
    undefined = {"trustworthiness": math.nan, "correlation": math.nan, "settled": False}
    return made.projection(sinking(), perplexity=3.3, **undefined)


def projection_of_words(special: Special = Special.HIDE) -> Projection:
    """A map of words without special tokens, its places made up, its distances those of its points."""
    head = of_pieces()
    view = viewed(head, by=Unit.WORD, special=special)
    points = points_of(head, view)
    random = np.random.default_rng(5)
    places = {"queries": random.normal(size=(len(points.queries), 2)) * 40}
    places["keys"] = random.normal(size=(len(points.keys), 2)) * 40
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (points.queries, points.keys))
    return made.projection(head, view=view, view_scaled=points.scaled, distance=1 - q @ k.T, **places)


MADE: dict[str, Callable[[], Result]] = {
    "head": lambda: made.head(made.AWKWARD, made.DOOR[:4], empty=[1], verdict=Verdict.FAILED),
    "head with sink and terms": sinking,
    "head of equal tokens": numbered,
    "head that was written": of_pieces,
    "returned weights": returned,
    "view by sentences": lambda: viewed(of_sentences(), by=Unit.SENTENCE, special=Special.HIDE),
    "view by words": lambda: viewed(of_pieces(), by=Unit.WORD),
    "view of a cross head": lambda: viewed(made.head(key_names=made.AWKWARD), special=Special.RENORMALISE),
    "terms": terms,
    "overview": lambda: made.overview(2, 3, made.AWKWARD, verdicts={(1, 2): Verdict.FAILED}),
    "overview of several measures": several_measures,
    "overview by words": lambda: viewed_overview(overview_of_pieces(), by=Unit.WORD),
    "verification": lambda: made.verification(2, 3, {(1, 2): Verdict.FAILED, (0, 0): Verdict.UNCERTIFIED}),
    "verification of what is infinite": lambda: made.verification(2, 3, difference=math.inf),
    "projection of a head with terms": projection_of_terms,
    "masked words": lambda: made_reports.masked(made.head(), [4, 6], verdict=0.25),
    "written text": lambda: made_reports.written(made.head(key_names=made.DOOR[:5]), HALF),
    "next sentence": next_sentence,
    "report by words": report,
    "report on a head with a sink": lambda: report(view=False),
    "report on a query without key": lambda: made_reports.report(made.head(empty=[4])),
    "comparison of cross-attention": cases_compare.cross,
    "comparison of layers": cases_compare.layers,
    "comparison of models": cases_compare.models,
    "comparison by words": cases_compare.by_words,
    "ablation": cases_ablate.ablation,
    "ablation from another text": cases_ablate.patched,
    "ablation of a link": cases_ablate.link,
    "ablation of MLPs": cases_ablate.mlps,
    "thumbnails": lambda: cases_thumbnails.thumbnails(causal=True),
    "long head": cases_long.long_head,
    "long head by its largest": lambda: cases_long.long_head(pool=Pool.MAX, query=11),
    "found pattern": lambda: cases_find.finding(pattern=Pattern.INDUCTION, by_norm=False),
    "found likeness": lambda: cases_find.finding(like=(2, 4)),
    "flow of little": lambda: cases_flow.flow(replaced=False, whole=False),
    "flow from a pooled vector": cases_flow.pooled,
    "layers": lambda: cases_layers.layered("middle", "late"),
    "layers of a class": lambda: cases_layers.layered("early", task="class", controls=0),
    "explanation": cases_explain.explanation,
    "explanation of heads alone": lambda: cases_explain.explanation("shown"),
    "explanation of nothing": lambda: cases_explain.explanation("nobody", replaced=None),
    "links": cases_links.links,
    "links across": lambda: cases_links.links(cross=True, as_clear=2),
    "no links": lambda: cases_links.links(found=0),
    "heads over prompts": cases_prompts.prompts,
    "likeness over prompts": lambda: cases_prompts.prompts(Asked.LIKE),
    "flow over prompts": lambda: cases_prompts.prompts(Asked.FLOW, refused=False),
    "answers over prompts": lambda: cases_prompts.prompts(Asked.PREDICT),
    "layers over prompts": lambda: cases_prompts.prompts(Asked.LAYERS),
    "why over prompts": lambda: cases_prompts.prompts(Asked.WHY),
    "one prompt": lambda: cases_prompts.prompts(count=1),
    "contributions": cases_contributions.contributions,
    "citation of sentences": lambda: cases_cite.citation("two", "none", "spread"),
    "citation by subsets": lambda: cases_cite.citation(subsets=16),
    "referee": cases_cite.referee,
    "retrieval": cases_retrieval.retrieval,
    "retrieval of nothing": lambda: cases_retrieval.retrieval(answers=False),
    "contributions to a logit": lambda: cases_contributions.contributions(alone=True, change=0.4),
    "why of nothing": lambda: cases_why.why(contrast=-1.5),
    "relations": cases_dependencies.dependencies,
    "one relation of a decoder": lambda: cases_dependencies.dependencies("det", ahead=False),
    "alignment that was learnt": lambda: cases_align.alignment(learnt=True),
    "alignment of nothing": lambda: cases_align.alignment(tells=False),
    "timing": cases_align.timing,
    "corpus": made_corpus.corpus,
    "corpus of linked words": made_corpus.linked,
    "composition": cases_compose.composition,
    "two corpora": made_corpus.apart,
    "two runs": cases_difference.between,
    "a run made anew": cases_check.check,
    "a run that came out otherwise": lambda: cases_check.check(broken=True),
    "dimensions": cases_dimensions.dimensions,
    "drift": cases_drift.drift,
    "drift of nothing": lambda: cases_drift.drift(moved=False),
    "senses": cases_senses.senses,
    "senses without labels": lambda: cases_senses.senses(labelled=False),
    "worked example": lambda: example("fruit"),
    "worked example with a mistake": lambda: mistaken(example("tensors"), "no-transpose"),
    "worked example with a mask": causal_numbers,
    "worked dictionary": lambda: look_up({"apple": 9.0, "chair": 3.0}, ["chair"]),
    "scale study": lambda: scale_study((1, 4, 16)),
    "picture": cases_media.picture_head,
    "pictures": cases_media.picture_grid,
    "sound": cases_media.sound_head,
    "sounds": cases_media.sound_grid,
    "outline": made_outlines.outline,
}
