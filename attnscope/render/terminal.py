"""What a console shows of a result: rich renderables, for any width, with and without colour.

No function here makes a console or prints. Text of the model or the user never passes through markup.
"""

from attnscope.render.bars import query_bars
from attnscope.render.certificate import certificate_line, verdict_words
from attnscope.render.comparison import comparison, comparison_header
from attnscope.render.header import header
from attnscope.render.map import projection
from attnscope.render.matrix import matrix
from attnscope.render.outline import outline
from attnscope.render.overview import overview
from attnscope.render.panels import SHOWS, Show
from attnscope.render.prediction import prediction, prediction_header
from attnscope.render.report import report_lines
from attnscope.render.terms import query_terms, terms
from attnscope.render.verification import verification

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
