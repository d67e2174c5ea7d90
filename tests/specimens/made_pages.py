"""One result of every kind that has a page, each made when it is asked for."""

from collections.abc import Callable
from typing import Any

import made_ablation
import made_alignment
import made_check
import made_citation
import made_comparison
import made_composition
import made_contributions
import made_corpus
import made_difference
import made_dimensions
import made_drift
import made_every
import made_explanation
import made_finding
import made_flow
import made_layered
import made_links
import made_long_heads
import made_media
import made_outlines
import made_prompts
import made_relations
import made_reports
import made_results as made
import made_retrieval
import made_senses
import made_thumbnails
import made_why

from attnscope.analysis.heads.view import viewed
from attnscope.results import (
    Ablation,
    Alignment,
    Check,
    Citation,
    Comparison,
    Composition,
    Contributions,
    Corpus,
    CorpusDifference,
    Dependencies,
    Difference,
    Dimensions,
    Drift,
    Explanation,
    Finding,
    Flow,
    HeadAttention,
    HeadTerms,
    HeadView,
    HeadWeights,
    LayeredPrediction,
    Links,
    LongHead,
    Outline,
    Overview,
    PictureAttention,
    PictureHeads,
    Prediction,
    Projection,
    Prompts,
    Referee,
    Report,
    Retrieval,
    ScaleStudy,
    Senses,
    SoundAttention,
    SoundHeads,
    Special,
    Thumbnails,
    Timing,
    Verification,
    Why,
    Worked,
)
from attnscope.vocabulary import Unit
from attnscope.worked import example

KINDS: dict[type, Callable[[], Any]] = {
    ScaleStudy: lambda: example("why-scale"),
    Worked: lambda: example("fruit"),
    Check: made_check.check,
    Outline: made_outlines.outline,
    Dependencies: made_relations.dependencies,
    Alignment: made_alignment.alignment,
    Timing: made_alignment.timing,
    Dimensions: made_dimensions.dimensions,
    Verification: lambda: made.verification(2, 3),
    HeadWeights: made_every.returned,
    HeadAttention: made.head,
    HeadView: lambda: viewed(made.head(), by=Unit.WORD, special=Special.HIDE),
    HeadTerms: made_every.terms,
    Overview: lambda: made.overview(3, 4),
    Thumbnails: made_thumbnails.thumbnails,
    Projection: made.projection,
    Report: made_reports.report,
    Links: made_links.links,
    Prompts: made_prompts.prompts,
    Explanation: made_explanation.explanation,
    LayeredPrediction: lambda: made_layered.layered("middle", "late"),
    Prediction: lambda: made_reports.masked(made.head(), [4]),
    PictureAttention: made_media.picture_head,
    PictureHeads: made_media.picture_grid,
    SoundAttention: made_media.sound_head,
    SoundHeads: made_media.sound_grid,
    Finding: made_finding.finding,
    Ablation: made_ablation.ablation,
    Comparison: made_comparison.texts,
    Composition: made_composition.composition,
    Difference: made_difference.between,
    Corpus: made_corpus.linked,
    CorpusDifference: made_corpus.apart,
    Senses: made_senses.senses,
    Drift: made_drift.drift,
    LongHead: made_long_heads.long_head,
    Flow: made_flow.flow,
    Why: made_why.why,
    Contributions: made_contributions.contributions,
    Citation: lambda: made_citation.citation("from", "none"),
    Referee: made_citation.referee,
    Retrieval: made_retrieval.retrieval,
}
