"""What becomes of an answer that is not certified: the first line says so, whatever the sheet is of.

And what is shown of a file says so: when it was stored, what was proved then, how to see whether it holds.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words.certificate import GLYPHS, verdict_words
from attnscope.render.sheet.said import name
from attnscope.render.sheet.sheet import Next, Sheet
from attnscope.results import Verdict
from attnscope.results.base.origin import worst

_HEAD = re.compile(r"\bL\d+ H\d+\b")
UNCHECKED, PROBABLY = "As the model reports it, unchecked: ", "Probably: "


def by_head(
    layers: Iterable[int], heads: Iterable[int], verdicts: Iterable[Iterable[Verdict]]
) -> dict[str, Verdict]:
    """The verdict of each head by its name."""
    columns = tuple(heads)
    rows = zip(layers, verdicts, strict=True)
    return {
        name(layer, head): verdict for layer, row in rows for head, verdict in zip(columns, row, strict=True)
    }


def guarded(sheet: Sheet, verdict: Verdict | None) -> Sheet:
    """The sheet with the answer that its verdicts allow; of what failed there is none, and nothing is next.

    What is open about heads that the answer does not name leaves it as it is: the line of proof names them.
    """
    if sheet.next is not None and not sheet.next.command.startswith("attnscope "):
        sheet = replace(sheet, next=None)
    if verdict is None or sheet.about_proof:
        return sheet
    if verdict is Verdict.FAILED:
        return replace(sheet, answer=_refused(sheet), next=None)
    if not sheet.answer:
        return sheet
    named = [sheet.verdicts[each] for each in _HEAD.findall(sheet.answer) if each in sheet.verdicts]
    stands = worst(named) if named else verdict
    if stands is Verdict.UNCERTIFIED:
        return replace(sheet, answer=UNCHECKED + sheet.answer)
    if stands in (Verdict.INCONCLUSIVE, Verdict.PARTIAL):
        return replace(sheet, answer=PROBABLY + sheet.answer)
    return sheet


def as_the_file_says(sheet: Sheet) -> Sheet:
    """The sheet of what was read from a file: where nothing was to be proved, only the file says it."""
    if sheet.proof or not sheet.untouched:
        return sheet
    said = f"{verdict_words(Verdict.STORED)}: {sheet.untouched}"
    return replace(sheet, proof=((Verdict.STORED, said),), untouched="")


def _refused(sheet: Sheet) -> str:
    if sheet.failed:
        return f"✗ Do not use these numbers: {sheet.failed}."
    count = Counter(sheet.verdicts.values())
    if failed := count[Verdict.FAILED]:
        of = f"{failed} of {counted(count.total(), 'head')}"
        verb = "does" if failed == 1 else "do"
        return f"✗ Do not use these numbers: {of} {verb} not match the model."
    return f"✗ Do not use these numbers: {sheet.title} as computed here is not what the model did."


@dataclass(frozen=True)
class Stored:
    """A file: the day that it is of, the verdict that stands in it, and what asks its model again.

    `day` is empty where no file tells it, `again` None where nothing runs the model. `command` made it.
    """

    day: str
    verdict: Verdict | None
    again: Next | None
    command: str = ""


def as_stored(sheet: Sheet, stored: Stored) -> Sheet:
    """The sheet of what was read from a file; what comes next is whether it is still so."""
    when = f"stored {stored.day}".rstrip()
    return replace(
        sheet,
        answer=f"{sheet.answer} (stored)" if sheet.answer else "",
        proof=tuple((verdict, _proof(verdict, words, stored)) for verdict, words in sheet.proof),
        departs=(when, *sheet.departs),
        notes=(*sheet.notes, *([f"made by: {stored.command}"] if stored.command else ())),
        next=stored.again or sheet.next,
    )


def _proof(verdict: Verdict, words: str, stored: Stored) -> str:
    if verdict is not Verdict.STORED or stored.verdict is None:
        return words
    said = stored.verdict.value
    said = said if stored.verdict is Verdict.CERTIFIED else f"at worst {said}"
    told = f"{GLYPHS[verdict]} {said} when stored, not computed again"
    return words.replace(verdict_words(verdict), told, 1)
