"""Attention on numbers that are given, and on those of one head of the bundled model."""

from attnscope.errors import InputError
from attnscope.results import Worked
from attnscope.session.listener import Listener
from attnscope.session.opening import Purpose, open_model
from attnscope.session.request import Inputs, ModelRequest, Wanted


def work_through_theatre(head: str | None, listener: Listener) -> Worked:
    """The theatre sentence through one head of the bundled model, captured and certified."""
    request = ModelRequest("demo")
    from attnscope.session.entering import read_inputs
    from attnscope.worked.theatre import HEAD, LAYER, SENTENCE, theatre

    wanted = Wanted(layer=LAYER, head=HEAD if head is None else head)
    inputs = Inputs(SENTENCE)
    opened = open_model(request, inputs, wanted, Purpose.ATTENTION, listener)
    reading = read_inputs(opened, inputs, listener)
    if opened.chosen is None or not opened.chosen.one:
        raise InputError("--head: the theatre needs one head")
    model = reading.model
    with listener.working("reading the attention"):
        tokens = reading.encoded.tokens
        return theatre(model.module, reading.inputs, tokens, opened.chosen.heads[0], model.origin())
