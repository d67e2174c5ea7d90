"""A model's attention by the first route that gives any; the last one is what the model returns of itself."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attnscope.attention import Capture
from attnscope.capture.returned import ASKED, SPARSE, Returned, ask_for_weights
from attnscope.capture.routes import NothingSeenError
from attnscope.capture.run import record
from attnscope.capture.selection import Labels, Selection
from attnscope.results import Route


def read(
    model: nn.Module,
    inputs: Mapping[str, Any],
    selection: Selection,
    labels: Labels,
    notice: Callable[[str], None],
) -> Capture | Returned:
    """The selected attention, recomputable where a route allows that; `notice` is told where none does.

    A route that is asked for is not replaced by another: then `InputError` says what it cannot read.
    """
    if selection.route is Route.RETURNED:
        return ask_for_weights(model, inputs, selection, labels, reason=ASKED)
    try:
        return record(model, inputs, selection, labels)
    except NothingSeenError as error:
        if selection.route is not None:
            raise
        weights = ask_for_weights(model, inputs, selection, labels, reason=SPARSE)
        notice(f"{error}: showing what it returns")
        return weights
