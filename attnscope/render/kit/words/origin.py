"""Which model numbers are of and how it was run, in a few words: the end of a line of proof."""

import re
from collections.abc import Sequence

from attnscope.printable import printable
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.header import own_name
from attnscope.results import Provenance
from attnscope.vocabulary import IN_PARTS

_DIGITS = 8
_HEX = re.compile(r"(?:sha256:)?([0-9a-f]{8,})")
_USUAL_DEVICE = "cpu"


def origin_words(origins: Sequence[Provenance]) -> tuple[str, ...]:
    """`demo e4cc4168`, `eager float32`: each model once, kernel and precision always, an unusual device."""
    told = dict.fromkeys(_model(each) for each in origins)
    told |= dict.fromkeys(_run(each) for each in origins)
    told |= dict.fromkeys(each.device for each in origins if each.device != _USUAL_DEVICE)
    return tuple(printable(each) for each in told if each)


def _model(origin: Provenance) -> str:
    """Name and the first digits of what pins its weights down."""
    told = own_name(origin.model)
    if origin.adapter == "none":
        told += " without its adapter"
    elif origin.adapter is not None:
        told += " with its adapter" if origin.adapter == origin.model else f" with {own_name(origin.adapter)}"
    pin = _HEX.match(origin.revision or origin.digest or "")
    told += f" {pin[1][:_DIGITS]}" if pin else ""
    if origin.unread:
        told += f" ({counted(len(origin.unread), 'weight')} unread)"
    if origin.requested not in (origin.model, origin.adapter):
        told += f" (asked for {own_name(origin.requested)})"
    return told


def _run(origin: Provenance) -> str:
    """`eager float32`, with the kernels that there are, and how a long text was run."""
    in_parts = f", {IN_PARTS}"
    kernel = origin.kernel.removesuffix(in_parts)
    told = " ".join(each for each in (kernel, origin.dtype) if each)
    return told + in_parts if kernel != origin.kernel else told
