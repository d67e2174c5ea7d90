"""Which results there are, and what each is called in files.

A further kind is its class and its line here; how it is stored follows from its fields.
"""

from typing import TypeAlias

from attnscope.results.base.presented import Presented
from attnscope.results.claims.ablation import Ablation
from attnscope.results.claims.alignment import Alignment, Timing
from attnscope.results.claims.citation import Citation
from attnscope.results.claims.comparison import Comparison
from attnscope.results.claims.composition import Composition
from attnscope.results.claims.contributions import Contributions
from attnscope.results.claims.corpora import CorpusDifference
from attnscope.results.claims.corpus import Corpus
from attnscope.results.claims.difference import Difference
from attnscope.results.claims.drift import Drift
from attnscope.results.claims.explanation import Explanation
from attnscope.results.claims.finding import Finding
from attnscope.results.claims.flow import Flow
from attnscope.results.claims.links import Links
from attnscope.results.claims.prompts import Prompts
from attnscope.results.claims.referee import Referee
from attnscope.results.claims.relations import Dependencies
from attnscope.results.claims.retrieval import Retrieval
from attnscope.results.claims.senses import Senses
from attnscope.results.claims.why import Why
from attnscope.results.heads import HeadAttention, HeadView, HeadWeights
from attnscope.results.layered import LayeredPrediction
from attnscope.results.long import LongHead
from attnscope.results.media import PictureAttention, PictureHeads, SoundAttention, SoundHeads
from attnscope.results.outline import Outline
from attnscope.results.overview import Overview, Thumbnails
from attnscope.results.prediction import Prediction
from attnscope.results.projection import Projection
from attnscope.results.report import Report
from attnscope.results.score import Dimensions, HeadTerms
from attnscope.results.verification import Check, Verification
from attnscope.results.worked import ScaleStudy, Worked

Result: TypeAlias = Presented

KINDS: dict[str, type[Result]] = {
    "ablation": Ablation,
    "alignment": Alignment,
    "check": Check,
    "citation": Citation,
    "comparison": Comparison,
    "composition": Composition,
    "contributions": Contributions,
    "corpora": CorpusDifference,
    "corpus": Corpus,
    "dependencies": Dependencies,
    "difference": Difference,
    "dimensions": Dimensions,
    "drift": Drift,
    "explanation": Explanation,
    "finding": Finding,
    "flow": Flow,
    "head": HeadWeights,  # and `HeadAttention`, which has all that is known of a head
    "layers": LayeredPrediction,
    "links": Links,
    "long": LongHead,
    "outline": Outline,
    "overview": Overview,
    "picture": PictureAttention,
    "picture-heads": PictureHeads,
    "prediction": Prediction,
    "projection": Projection,
    "prompts": Prompts,
    "referee": Referee,
    "retrieval": Retrieval,
    "report": Report,
    "scale": ScaleStudy,
    "senses": Senses,
    "sound": SoundAttention,
    "sound-heads": SoundHeads,
    "terms": HeadTerms,
    "thumbnails": Thumbnails,
    "timing": Timing,
    "verification": Verification,
    "view": HeadView,
    "why": Why,
    "worked": Worked,
}
_NAMES = {kind: name for name, kind in KINDS.items()} | {HeadAttention: "head"}


def name_of(kind: type[Result]) -> str:
    """What a kind of result is called in files; its sheet has the same name."""
    return _NAMES[kind]
