"""Put one head on one page, for a talk or a paper.

Prediction, scores, weights, map, contributions and certificate; a PDF has one panel a page. Without
--query the page is about the first [MASK], in a decoder about the last token, else about the token that
is most sure of one key.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from attnscope.errors import InputError
from attnscope.session.question import Question
from attnscope.session.wanted import QUERY
from attnscope.session.which import Looked, Name, OneHead
from attnscope.verbs.tsne.question import Mapped
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.verbs.report.result import Report  # noqa: F401


@dataclass(frozen=True)
class ReportHead(Looked, Mapped, OneHead, Question["Report"]):
    """One head and one of its queries, with everything that goes on a page.

    Its map is that of `tsne`: by `perplexity`, `metric` and at most `max_iter` iterations.
    """

    METHODS = ("Reading.report",)
    KIND, WRITES, ARTICLE, DRAWS = "Report", True, True, True
    PURPOSE = Purpose.ATTENTION_AND_ANSWER
    ANSWER = "attnscope.verbs.report.answer:report"
    NAMES = "attnscope.verbs.report.answer:check_query"

    query: Annotated[Name | None, QUERY] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.looking.unit.is_long:
            of_one = f"a report is of one token: leave --by {self.looking.unit} out"
            raise InputError(f"{of_one} (heads and find have it)")


FORMS = (ReportHead,)
