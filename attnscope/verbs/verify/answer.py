"""Every head of a model certified, and what it answers held against a run that was not touched."""

from dataclasses import replace

from attnscope.capture import provenance_of
from attnscope.session.reading import Reading
from attnscope.verbs.verify.certifying import verify_model
from attnscope.verbs.verify.question import Verify
from attnscope.verbs.verify.result import Verification


def verify_reading(reading: Reading, asked: Verify) -> Verification:
    """The certificates of all heads, and the model's results held against a run that was not touched."""
    model, inputs, tokens = reading.model, reading.inputs, reading.encoded.tokens
    target = None if reading.target is None else reading.target.tokens
    with reading.running("certifying every head"):
        provenance = provenance_of(model.module, tokens, reading.origin())
        result = verify_model(model.module, inputs, tokens, provenance, target, asked.every_token)
    medium = reading.medium
    return result if medium is None else replace(result, notes=(medium.described, *result.notes))
