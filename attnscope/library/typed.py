"""The library's question methods for type checkers; never imported by a running program."""

from attnscope.session.question import asks, asks_each, either
from attnscope.verbs.ablate.question import Ablate
from attnscope.verbs.align.question import Align
from attnscope.verbs.cite.question import Cite, Judge
from attnscope.verbs.compare.library import compare as compare
from attnscope.verbs.compare.library import difference as difference
from attnscope.verbs.compare.question import Tuned
from attnscope.verbs.compose.question import Compose
from attnscope.verbs.corpus.library import corpus as corpus
from attnscope.verbs.dependencies.question import Relate
from attnscope.verbs.explain.question import Explain
from attnscope.verbs.find.question import Find, FindLinks, Retrieve
from attnscope.verbs.flow.question import Follow
from attnscope.verbs.heads import methods as measuring
from attnscope.verbs.heads.question import AtAGlance, Grid, Long, Over, Pair, Terms, Weights
from attnscope.verbs.model.answer import outline as outline
from attnscope.verbs.predict.question import Predict, PredictLayers
from attnscope.verbs.report.question import ReportHead
from attnscope.verbs.sdpa.attention import sdpa as sdpa
from attnscope.verbs.tsne.question import Map
from attnscope.verbs.verify.question import Verify
from attnscope.verbs.why.question import WhyAnswers, WhyLooks


class OfReading:
    """Question methods of `Reading`."""

    head, long_head, terms, dimensions = asks(Weights), asks(Long), asks(Terms), asks(Pair)
    overview, grid, over, measure = asks(AtAGlance), asks(Grid), asks(Over), measuring.measure
    predict, predict_layers, verify = asks(Predict), asks(PredictLayers), asks(Verify)
    report, tsne = asks(ReportHead), asks(Map)
    ablate, align, cite = asks(Ablate), asks(Align), asks(Cite)
    find, links = asks(Find), asks(FindLinks)
    explain, flow = asks(Explain), asks(Follow)
    why = either(asks(WhyLooks), asks(WhyAnswers))


class OfPrompted:
    """Question methods of `Prompted`."""

    ablate, find, flow, links = asks_each(Ablate), asks_each(Find), asks_each(Follow), asks_each(FindLinks)
    predict, predict_layers = asks_each(Predict), asks_each(PredictLayers)
    why = either(asks_each(WhyLooks), asks_each(WhyAnswers))


class OfModel:
    """Question methods of `Model`."""

    cite, retrieval, compare = asks(Judge), asks(Retrieve), asks(Tuned)
    composition, dependencies = asks(Compose), asks(Relate)
