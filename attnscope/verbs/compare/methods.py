"""A tuned model against a model that is in memory: a method of that."""

from dataclasses import replace
from typing import TYPE_CHECKING

from attnscope.results import Drift
from attnscope.session.choosing import choose
from attnscope.session.question import taking
from attnscope.session.request import ModelRequest
from attnscope.verbs.compare.question import Tuned
from attnscope.verbs.compare.tuned import drift_of

if TYPE_CHECKING:
    from attnscope.library.models import Model


@taking(Tuned)
def compare(self: "Model", asked: Tuned) -> Drift:
    from attnscope.library.models import Model, opened

    self._remark()
    tuned = asked.tuned
    other = tuned if isinstance(tuned, Model) else opened(ModelRequest(str(tuned)), self._listener)
    other._remark()
    before, after = (
        replace(each, chosen=choose(each.model, asked.wanted, self._listener, sensed=False))
        for each in (self._opened, other._opened)
    )
    return drift_of(before, after, asked, self._listener)
