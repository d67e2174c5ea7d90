"""Each kind of result as a sheet: the one table in which a kind is entered.

Every medium asks here first. What has no line here yet is drawn in a room of its own.
"""

from collections.abc import Callable
from typing import Any

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheets.ablation import ablation
from attnscope.render.sheets.check import check
from attnscope.render.sheets.comparison import comparison
from attnscope.render.sheets.composition import composition
from attnscope.render.sheets.corpora import corpora
from attnscope.render.sheets.corpus import corpus
from attnscope.render.sheets.dependencies import dependencies
from attnscope.render.sheets.difference import difference
from attnscope.render.sheets.dimensions import dimensions
from attnscope.render.sheets.finding import finding
from attnscope.render.sheets.flow import flow
from attnscope.render.sheets.long_head import long_head
from attnscope.render.sheets.outline import outline
from attnscope.render.sheets.overview import overview
from attnscope.render.sheets.prediction import prediction
from attnscope.render.sheets.projection import projection
from attnscope.render.sheets.report import report
from attnscope.render.sheets.scale_study import scale_study
from attnscope.render.sheets.senses import senses
from attnscope.render.sheets.thumbnails import thumbnails
from attnscope.render.sheets.verification import verification
from attnscope.render.sheets.worked import worked
from attnscope.results import (
    Ablation,
    Check,
    Comparison,
    Composition,
    Corpus,
    CorpusDifference,
    Dependencies,
    Difference,
    Dimensions,
    Finding,
    Flow,
    LongHead,
    Outline,
    Overview,
    Prediction,
    Projection,
    Report,
    Result,
    ScaleStudy,
    Senses,
    Thumbnails,
    Verification,
    Worked,
)


def _whole(make: Callable[[Any], Sheet]) -> Callable[[Any, Focus], Sheet]:
    """`make` for a kind of which there is nothing to choose: it is always shown as a whole."""
    return lambda result, focus: make(result)


SHEETS: dict[type, Callable[[Any, Focus], Sheet]] = {
    Ablation: _whole(ablation),
    Check: check,
    Comparison: comparison,
    Composition: _whole(composition),
    Corpus: _whole(corpus),
    CorpusDifference: _whole(corpora),
    Dependencies: _whole(dependencies),
    Difference: _whole(difference),
    Dimensions: dimensions,
    Finding: _whole(finding),
    LongHead: long_head,
    Outline: _whole(outline),
    Overview: _whole(overview),
    Prediction: _whole(prediction),
    Projection: projection,
    Report: report,
    Flow: _whole(flow),
    ScaleStudy: _whole(scale_study),
    Senses: _whole(senses),
    Thumbnails: thumbnails,
    Verification: _whole(verification),
    Worked: worked,
}


def sheet_of(result: Result, focus: Focus = WHOLE) -> Sheet | None:
    """What a result shows of what is looked at; None of a kind that has no sheet."""
    make = SHEETS.get(type(result))
    return None if make is None else make(result, focus)
