"""Answers to one input after another, each with the same heads changed, in one batch an input.

What is asked for is read back, but nothing is held against a run of one entry: that was done with the first
input, by `Experiments`. An input grows on its way: what comes before the first layer that is touched is
computed once, for it is the same in all entries. The first time it is computed for each entry too, and where
the answers are not the same all inputs are.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from attnscope.capture.evaluation_mode import without_cache
from attnscope.capture.intervening.changes import AnswerRows, Logits, Variant
from attnscope.capture.intervening.experiments import TOKENS_AT_ONCE, Experiments
from attnscope.capture.intervening.read_back import ReadBack
from attnscope.capture.intervening.rounding import carried, strays


class Others:
    """Other inputs than that of `first`, whose experiments were run, each with these `variants`."""

    def __init__(self, first: Experiments, variants: Sequence[Variant]) -> None:
        self.first, self.entries = first, [(), *variants]
        self.layer = min((change.layer for variant in variants for change in variant), default=None)
        self.grows = None if first.plainness == 0 and self.layer is not None else False  # not known yet

    def scores(self, inputs: Mapping[str, Any], asked: AnswerRows) -> Logits | None:
        """The answers as the model is, then in each variant; None where there may be no such batch."""
        first = self.first
        size = len(self.entries) * max((each.shape[2] for each in first.answers.values()), default=1)
        if not first.alike or size > TOKENS_AT_ONCE:
            return None
        made = copy(first)
        made.inputs, made.asked = without_cache(first.model, inputs), asked
        found = self._grown(made)
        scores, back = found or made.batch(None, self.entries, saving=False)
        first.count(back)
        return scores

    def _grown(self, made: Experiments) -> tuple[Logits, ReadBack] | None:
        if self.grows is False:
            return None
        try:
            found = made.batch(self.layer, self.entries, saving=False, growing=True)
        except Exception:  # whatever a model makes of it: then it does not grow
            self.grows = False
            return None
        if self.grows is None:
            whole, _ = made.batch(None, self.entries, saving=False)
            lost = found[1].counts(made.passes)[1]
            self.grows = not lost and not strays(found[0], whole, carried(whole))
        return found if self.grows else None
