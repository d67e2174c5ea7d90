"""A result for every case and every optional part of what `cite --cases` says."""

import math
from collections.abc import Callable
from dataclasses import replace

from cases_cite import referee

from attnscope.verbs.cite import sheet as sheets
from attnscope.verbs.cite.result import Method, Referee
from attnscope.verbs.cite.result import RefereeCase as Case

SAID, CASES = sheets.referee_said, Case


def without_gradients() -> Referee:
    whole = referee()
    copying = replace(whole.scores[1], method=Method.COPYING, top1=0.5)
    return replace(whole, scores=(*whole.scores[:2], copying))


def without_source() -> Referee:
    whole = referee()
    return replace(
        whole, judged=whole.judged[6:], scores=tuple(replace(each, top1=math.nan) for each in whole.scores)
    )


EXAMPLES: dict[str, Callable[[], Referee]] = {
    "compared": referee,
    "one wrongly named": lambda: referee(wrong=1),
    "all with a source": lambda: referee(none=False),
    "without gradients": without_gradients,
    "without a source": without_source,
}
