"""What there is of a model before its weights, asked in a program."""

from attnscope.process.machine import alone
from attnscope.results import Outline
from attnscope.session.listener import Log
from attnscope.session.wanted import Numbers, Wanted
from attnscope.verbs.model.answer import Lengths, outline_model


@alone
def outline(
    name: str | None = None,
    *,
    layer: Numbers = -1,
    kind: str | None = None,
    tower: str | None = None,
    length: Lengths = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Outline:
    """What there is to look at in a model, before any of its weights is fetched or read.

    `costs` of the result says what one head of `layer` would cost at every `length` in tokens: 512,
    "128,1024", [128, 1024]. `name`, `revision` and `trust_remote_code` are those of `load`, `kind` and
    `tower` choose as for `Reading`. Raises `ModelUnavailableError` and `InputError` as `load` does.
    """
    wanted = Wanted(layer=layer, kind=kind, tower=tower)
    return outline_model(name, wanted, Log(), revision=revision, remote_code=trust_remote_code, length=length)
