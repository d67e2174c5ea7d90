"""What is shown of a file says so: when it was stored, what was proved then, how to see whether it holds."""

from dataclasses import dataclass, replace

from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.results import Verdict


@dataclass(frozen=True)
class Stored:
    """A file: the day that it is of, the verdict that stands in it, and what asks its model again.

    `day` is empty where no file tells it, `again` None where nothing runs the model.
    """

    day: str
    verdict: Verdict | None
    again: Next | None


def as_stored(sheet: Sheet, stored: Stored) -> Sheet:
    """The sheet of what was read from a file; what comes next is whether it is still so."""
    when = f"stored {stored.day}".rstrip()
    return replace(
        sheet,
        answer=f"{sheet.answer} (stored)" if sheet.answer else "",
        proof=tuple((verdict, _proof(verdict, words, stored)) for verdict, words in sheet.proof),
        departs=(when, *sheet.departs),
        next=stored.again or sheet.next,
    )


def _proof(verdict: Verdict, words: str, stored: Stored) -> str:
    """`○ certified when stored, not computed again: 48 of 48 heads`: what only the file says."""
    if verdict is not Verdict.STORED or stored.verdict is None:
        return words
    said = stored.verdict.value
    said = said if stored.verdict is Verdict.CERTIFIED else f"at worst {said}"
    told = f"{GLYPHS[verdict]} {said} when stored, not computed again"
    return words.replace(verdict_words(verdict), told, 1)
