"""What a console shows of a result: rich renderables, for any width, with and without colour.

No function here makes a console or prints. Text of the model or the user never passes through markup.
"""

from attnscope.render.comparison.terminal import comparison, comparison_header
from attnscope.render.head.bars import query_bars
from attnscope.render.head.matrix import matrix
from attnscope.render.kit.certificate import certificate_line, verdict_words
from attnscope.render.kit.header import header
from attnscope.render.kit.stage import SHOWS, Show
from attnscope.render.map.terminal import projection
from attnscope.render.outline.terminal import outline
from attnscope.render.overview.terminal import overview
from attnscope.render.prediction.terminal import prediction, prediction_header
from attnscope.render.report.terminal import report_lines
from attnscope.render.terms.terminal import query_terms, terms
from attnscope.render.verification.terminal import verification

__all__ = [
    "SHOWS",
    "Show",
    "certificate_line",
    "comparison",
    "comparison_header",
    "header",
    "matrix",
    "outline",
    "overview",
    "prediction",
    "prediction_header",
    "projection",
    "query_bars",
    "query_terms",
    "report_lines",
    "terms",
    "verdict_words",
    "verification",
]
