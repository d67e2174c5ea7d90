"""Web page of a report."""

from attnscope.render.sheets import sheet_of
from attnscope.render.web.document import Document, of_map, show_medium
from attnscope.render.web.room import Beside
from attnscope.verbs.report.result import Report


def of_report(made: Document, report: Report, beside: Beside) -> None:
    """Fill the document with a report: answer, map, proof, and the picture or sound under the weights."""
    made.first = "sheet"
    of_map(made, report.projection, beside)
    made.below = ("map", "proof")
    if beside.laid is not None:
        show_medium(made, beside.laid)
    if report.prediction is not None:
        predicted = sheet_of(report.prediction)
        made.says += (predicted.answer, *predicted.notes)
    made.opening |= {"view": "matrix", "query": report.query, "key": None}
    if report.view is not None:
        made.opening |= {"words": report.view.by.joins, "special": report.view.special.value}
