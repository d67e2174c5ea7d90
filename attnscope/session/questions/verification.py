"""Every layer and head of a model, certified on one input."""

from dataclasses import replace

from attnscope.analysis import verify_model
from attnscope.capture import provenance_of
from attnscope.capture.faults import if_it_runs
from attnscope.results import Verification
from attnscope.session.reading import Reading


def verify_reading(reading: Reading, *, every_token: bool = False) -> Verification:
    """The certificates of all heads, and the model's results held against a run that was not touched.

    With `every_token` the place of each token is tried, however long the text, and each row of a block.
    """
    model, inputs, tokens = reading.model, reading.inputs, reading.encoded.tokens
    target = None if reading.target is None else reading.target.tokens
    listener = reading.listener
    with listener.working("certifying every head"), if_it_runs(model.module, inputs, model.name):
        provenance = provenance_of(model.module, tokens, model.origin())
        result = verify_model(model.module, inputs, tokens, provenance, target, every_token)
    if reading.perceived is None or reading.perceived.medium is None:
        return result
    return replace(result, notes=(reading.perceived.medium.described, *result.notes))
