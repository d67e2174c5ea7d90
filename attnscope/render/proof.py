"""What is proved of a result, in words: for a notebook, and for what a picture's file says of itself."""

from attnscope.render.focus import Focus
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.certificate import certificate_words, verdict_words
from attnscope.render.kit.words.figure import whole_source
from attnscope.render.kit.words.header import own_name
from attnscope.render.look import Look
from attnscope.render.sheets import sheet_of
from attnscope.results import (
    Comparison,
    HeadView,
    HeadWeights,
    LongHead,
    Overview,
    Provenance,
    Result,
    Verdict,
)

_IN_FULL = Focus(verbose=True)


def proof(result: Result) -> str:
    """What is proved: what its sheet says in full, the certificate of the one head, or the worst verdict."""
    if (sheet := sheet_of(result, _IN_FULL)) is not None:
        return " · ".join(told for _, told in sheet.proof)
    match result:
        case HeadWeights() | LongHead():
            return certificate_words(result.certificate)
        case HeadView():
            return proof(result.head)
        case Overview():
            every = [each.verdict for row in result.certificates for each in row]
            alike = f"{every.count(result.verdict)} of {counted(len(every), 'head')}"
            return f"{verdict_words(result.verdict)}: {alike}"
    return "" if result.verdict is None else verdict_words(result.verdict)


def described(result: Result, look: Look) -> str:
    """What the file of a picture holds beside it, and no look can leave out: proof and origin.

    The path of a folder on this machine stands there only where the caption has everything.
    """
    sources = [
        whole_source(each, each.model if look.in_full else own_name(each.model)) for each in origins(result)
    ]
    return " · ".join(part for part in (proof(result), *dict.fromkeys(sources)) if part)


def origins(result: Result) -> list[Provenance]:
    """Where the numbers come from: one model, both that are compared, or none."""
    if (sheet := sheet_of(result)) is not None:
        return list(sheet.origins)
    match result:
        case HeadView():
            return origins(result.head)
        case Comparison():
            return [side.head.provenance for side in result.sides]
    found = getattr(result, "provenance", None)
    return [] if found is None else [found]


def hidden_verdict(result: Result, look: Look) -> Verdict | None:
    """A verdict other than the best that a picture with this look says nothing of."""
    silent = look.bare or not (look.headed or look.captioned)
    return None if not silent or result.verdict in (None, Verdict.CERTIFIED) else result.verdict
