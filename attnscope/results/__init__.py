"""Results of analyses: frozen, NumPy only, each with its provenance and its certificate.

A result can be rendered, or written and read again, on a machine without torch. Axis words are the
project's own: layer, head, query, key, dim. Numbers are float64 as the reference arithmetic made them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.errors import InputError
from attnscope.register import public
from attnscope.results.base.groups import Special, SpecialMass
from attnscope.results.base.origin import Certificate, Fault, Kind, Provenance, Reach, Route, Verdict
from attnscope.results.claims.prompts import Prompts
from attnscope.results.claims.ranking import Contents
from attnscope.results.heads import HeadAttention, HeadView, HeadWeights
from attnscope.results.long import LongHead
from attnscope.results.media import (
    Gaze,
    Picture,
    PictureAttention,
    PictureHeads,
    Sound,
    SoundAttention,
    SoundHeads,
    Spectrogram,
)
from attnscope.results.outline import Cost, Gap, LayerOutline, Outline, Position, Storage, TowerOutline
from attnscope.results.overview import Overview, Thumbnails
from attnscope.results.prediction import (
    AnswerSpan,
    Blank,
    Classes,
    Generated,
    Guess,
    NextSentence,
    Prediction,
)
from attnscope.results.projection import MapSettings, Projection
from attnscope.results.result import Result
from attnscope.results.score import Dimensions, HeadTerms, Influence, Rotation
from attnscope.results.scores import HeadScores, MeasureDescription
from attnscope.vocabulary import Pattern

if TYPE_CHECKING:  # at run time a verb gives them, where it is there (`__getattr__`)
    from attnscope.verbs.ablate.result import Ablation
    from attnscope.verbs.align.result import Alignment, Timing
    from attnscope.verbs.check.result import Check, HeadCheck
    from attnscope.verbs.cite.result import Citation, Referee
    from attnscope.verbs.compare.corpora_result import CorpusDifference
    from attnscope.verbs.compare.result import Between, Comparison, Difference, Divergence, Side, Similarity
    from attnscope.verbs.compare.texts_result import Drift, Senses
    from attnscope.verbs.compose.result import Composition
    from attnscope.verbs.corpus.result import Corpus
    from attnscope.verbs.dependencies.result import Dependencies
    from attnscope.verbs.explain.result import Explanation
    from attnscope.verbs.find.result import Controls, Finding, Links, Retrieval, Sought
    from attnscope.verbs.flow.result import Flow
    from attnscope.verbs.predict.result import LayerAnswer, LayeredPlace, LayeredPrediction
    from attnscope.verbs.report.result import Report
    from attnscope.verbs.sdpa.result import ScaleStudy, Worked
    from attnscope.verbs.verify.result import LayerCheck, OutputCheck, Verification
    from attnscope.verbs.why.contributions_result import Contributions
    from attnscope.verbs.why.result import Why


def load(path: str | Path) -> Result:
    """Reads the result from the .npz or .json file `path` that attnscope wrote; its content tells the kind.

    Raises `CertificateError` where it was changed since, `InputError` where there is no such file, or it
    cannot be read, is damaged, of a newer attnscope, or no result. What JSON leaves out is None in the
    result: the dense weights of an overview, the pixels of a picture, the samples of a sound. Pictures and
    CSV cannot be read again.
    """
    from attnscope.results.stored.document import load as load_stored

    return load_stored(path)


def json_schema(kind: str) -> dict[str, object]:
    """JSON Schema (draft 2020-12) of one kind of JSON document, such as `head` or `finding`.

    Raises `InputError` where there is no such kind.
    """
    from attnscope.results.stored.schema import DESCRIBED
    from attnscope.results.stored.schema import json_schema as of_kind

    if kind not in DESCRIBED:
        raise InputError(f"no document is called '{kind}': there are {', '.join(DESCRIBED)}")
    return of_kind(kind)


def __getattr__(name: str) -> Any:
    """Lazily imports result classes that belong to verbs."""
    if (found := public(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


__all__ = [
    "Ablation",
    "Alignment",
    "AnswerSpan",
    "Between",
    "Blank",
    "Certificate",
    "Check",
    "Citation",
    "Classes",
    "Comparison",
    "Composition",
    "Contents",
    "Contributions",
    "Controls",
    "Corpus",
    "CorpusDifference",
    "Cost",
    "Dependencies",
    "Difference",
    "Dimensions",
    "Divergence",
    "Drift",
    "Explanation",
    "Fault",
    "Finding",
    "Flow",
    "Gap",
    "Gaze",
    "Generated",
    "Guess",
    "HeadAttention",
    "HeadCheck",
    "HeadScores",
    "HeadTerms",
    "HeadView",
    "HeadWeights",
    "Influence",
    "Kind",
    "LayerAnswer",
    "LayerCheck",
    "LayerOutline",
    "LayeredPlace",
    "LayeredPrediction",
    "Links",
    "LongHead",
    "MapSettings",
    "MeasureDescription",
    "NextSentence",
    "Outline",
    "OutputCheck",
    "Overview",
    "Pattern",
    "Picture",
    "PictureAttention",
    "PictureHeads",
    "Position",
    "Prediction",
    "Projection",
    "Prompts",
    "Provenance",
    "Reach",
    "Referee",
    "Report",
    "Result",
    "Retrieval",
    "Rotation",
    "Route",
    "ScaleStudy",
    "Senses",
    "Side",
    "Similarity",
    "Sought",
    "Sound",
    "SoundAttention",
    "SoundHeads",
    "Special",
    "SpecialMass",
    "Spectrogram",
    "Storage",
    "Thumbnails",
    "Timing",
    "TowerOutline",
    "Verdict",
    "Verification",
    "Why",
    "Worked",
    "json_schema",
    "load",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
