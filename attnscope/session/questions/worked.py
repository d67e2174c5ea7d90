"""Attention step by step on one head of a model, and on one that is stored."""

from attnscope.errors import InputError
from attnscope.results import Worked
from attnscope.session.listener import Listener
from attnscope.session.opening import Purpose
from attnscope.session.request import Inputs, ModelRequest, Wanted


def work_through_theatre(
    request: ModelRequest, layer: str | None, head: str | None, kind: str | None, listener: Listener
) -> Worked:
    """The theatre sentence through one head of a model, captured and certified.

    Without a layer and a head it is the one that the bundled model learned for it, of others the first.
    """
    from attnscope.session.entering import open_chosen
    from attnscope.worked.model_head import HEAD, LAYER, SENTENCE, theatre

    usual = HEAD if request.model in ("demo", None) else 0
    wanted = Wanted(layer=LAYER if layer is None else layer, head=usual if head is None else head, kind=kind)
    reading, chosen = open_chosen(request, Inputs(SENTENCE), wanted, listener, Purpose.ATTENTION)
    if not chosen.one:
        raise InputError("--layer, --head: the theatre needs one head")
    with listener.working("reading the attention"):
        captured = reading.capture(chosen)
        return theatre(reading.model.module, reading.inputs, captured, *chosen.only())
