"""A sheet: a result's content, the same for terminal, pictures, pages, notebooks and tables."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import is_
from typing import Any, TypeVar

from attnscope.printable import LEFT_TO_RIGHT, printable
from attnscope.render.kit.numbers import counted
from attnscope.render.kit.words import GLYPHS, verdict_words
from attnscope.render.sheet.blocks import Beside, Block, flat
from attnscope.render.sheet.said import features, limits, name, read, setting
from attnscope.render.sheet.table import Table
from attnscope.render.words import Said
from attnscope.results import Provenance, Verdict
from attnscope.results.base.origin import worst

Shown = TypeVar("Shown")
# modules whose classes hold displayed texts, not computed results; steps of arithmetic hold both
_SHOWN = re.compile(r"attnscope\.(render\.|results\.steps$)|.*sheet$")


@dataclass(frozen=True)
class Next:
    """The next question in a few words, and the command that asks it."""

    question: str
    command: str

    def __str__(self) -> str:
        return f"Next: {self.question} {self.command}"


@dataclass(frozen=True)
class Sheet:
    """A result's content: the sentence that answers, the blocks that show it, its control and its proof.

    `answer` is one to three lines; `title` and `setting` say what the result is, and of which attention and
    model, in files, above pictures and under -v. `texts` is the input, `messages` the positions of a chat's
    roles. `control` names the comparison, `notes` limit the answer, a line each. `legend` explains words and
    marks (--legend); `details` are for -v. `departs` are options that are not the default, such as `by words`
    or `seed 7`, for the line of proof, where `untouched` stands if nothing is recomputed. `verdicts` are
    those of heads that the answer may name; `failed` names other parts that do not match the model; an answer
    that is `about_proof` reports doubts itself.

    `table` makes all rows, for a file; `record` stands at the top of a file. `main` is the block that fits
    one Axes; without it `whole` says why the picture takes a page. `summary` is one line beside the title. A
    page also shows the `more` blocks, and opens on the head, query and key of `opens`.
    """

    title: str
    setting: str
    origins: tuple[Provenance, ...]
    answer: str
    blocks: tuple[Block | Beside, ...]
    table: Callable[[], Table]
    texts: tuple[str, ...] = ()
    messages: str = ""
    control: str = ""
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    proof: tuple[tuple[Verdict, str], ...] = ()
    departs: tuple[str, ...] = ()
    untouched: str = ""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    failed: str = ""
    about_proof: bool = False
    main: Block | None = None
    whole: str = "this picture has several panels"
    summary: tuple[str, ...] = ()
    record: tuple[tuple[str, object], ...] = ()
    next: Next | None = None
    more: tuple[Block, ...] = ()
    opens: dict[str, Any] = field(default_factory=dict)

    @property
    def every(self) -> tuple[Block, ...]:
        """All blocks in order, without `Beside`."""
        return tuple(one for each in self.blocks for one in flat(each))

    @property
    def told(self) -> tuple[str, ...]:
        """Lines below the blocks in files, pictures and pages: control, notes and legend."""
        held = self.control and f"control: {self.control}"
        return tuple(each for each in (held, *self.notes, *self.legend) if each)


def saying(say: Said, heads: Any = None, **own: Any) -> Sheet:
    """The sheet of a result: its `own` parts, and the usual ones from its verb's table of sentences.

    For a result about `heads` the usual parts include their text, notes and features.
    """
    result: Any = say.result
    of: Any = result if heads is None else heads
    usual: dict[str, Callable[[], Any]] = {
        "title": lambda: say("title"),
        "setting": lambda: setting(of),
        "origins": lambda: (of.provenance,),
        "answer": lambda: say(result.case),
        "control": lambda: say("control") if "control" in say else "",
        "notes": lambda: (*say.lines("notes"), *result.notes),
        "legend": lambda: tuple(say.lines("legend")) if "legend" in say else (),
    }
    if heads is not None:
        usual["texts"] = lambda: read(of.kind, of.query_tokens, of.key_tokens)
        usual |= {"notes": lambda: limits(of), "legend": lambda: features(of)}
    return Sheet(**{name: made() for name, made in usual.items() if name not in own}, **own)


def harmless(shown: Shown) -> Shown:
    """A copy of a sheet, or a part of one, without terminal controls or line breaks in its texts."""
    made: Shown = _harmless(shown, {})
    return made


def _harmless(part: Any, done: dict[int, Any]) -> Any:
    """`harmless` of one part; a part used in several places is copied once."""
    if isinstance(part, str):
        return printable(part, LEFT_TO_RIGHT)
    if type(part) is tuple:
        parts = tuple(_harmless(each, done) for each in part)
        return part if all(map(is_, part, parts)) else parts
    if isinstance(part, Table):
        return Table(*_harmless(part.columns, done))
    if not is_dataclass(part) or not _SHOWN.match(type(part).__module__):
        return part
    if id(part) not in done:
        texts = ((each.name, getattr(part, each.name)) for each in fields(part) if each.init)
        changed = {name: new for name, old in texts if (new := _harmless(old, done)) is not old}
        done[id(part)] = replace(part, **changed) if changed else part  # type: ignore[type-var]
    return done[id(part)]


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
    """The sheet with the answer that its verdicts allow; a failed one has no answer and no next command.

    Doubts about heads that the answer does not name leave it unchanged: the line of proof reports them.
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
    """Sheet of a stored result: its untouched line becomes a proof marked as stored."""
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
    """A stored file: its date, its verdict, and the command that runs its model again.

    `day` is empty where unknown, `again` None where no model can be run. `command` made the file.
    """

    day: str
    verdict: Verdict | None
    again: Next | None
    command: str = ""


def as_stored(sheet: Sheet, stored: Stored) -> Sheet:
    """The sheet marked as stored; the next command runs the model again."""
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
