"""`attnscope verify`: every layer and head of a model at once, one exit code."""

from attnscope.cli.groups import Delivery, Read, Request
from attnscope.cli.output import Output, check_delivery


def verify(read: Read, delivery: Delivery, *, request: Request, output: Output) -> None:
    """Certify every layer and head of a model, and its results.

    The final hidden states and logits are held against a run that was not touched. Exit code 5 when
    a certificate fails or a result changes while the model is watched.
    """
    check_delivery(delivery, "Verification")
    inputs = read.inputs()
    from attnscope.session.entering import open_whole
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.verification import verify_reading

    output.deliver(verify_reading(open_whole(request, inputs, output, Purpose.EVERYTHING)), delivery)
