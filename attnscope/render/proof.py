"""What is proved of a result, in words: for a notebook, and for what a picture's file says of itself."""

from attnscope.render.focus import Focus
from attnscope.render.kit.words.certificate import whole_source
from attnscope.render.kit.words.header import own_name
from attnscope.render.look import Look
from attnscope.render.sheets import sheet_of
from attnscope.results import Result, Verdict


def proof(result: Result) -> str:
    """What is proved, in full."""
    return " · ".join(told for _, told in sheet_of(result, Focus(verbose=True)).proof)


def described(result: Result, look: Look) -> str:
    """What the file of a picture holds beside it, and no look can leave out: proof and origin.

    The path of a folder on this machine stands there only where the caption has everything.
    """
    sources = [
        whole_source(each, each.model if look.in_full else own_name(each.model))
        for each in sheet_of(result).origins
    ]
    return " · ".join(part for part in (proof(result), *dict.fromkeys(sources)) if part)


def hidden_verdict(result: Result, look: Look) -> Verdict | None:
    """A verdict other than the best that a picture with this look says nothing of."""
    silent = look.bare or not (look.headed or look.captioned)
    return None if not silent or result.verdict is None or result.verdict.proved else result.verdict
