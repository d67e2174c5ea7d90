"""A question asked of one text, or of every line of a file: the model is loaded once, the answers are shown.

The one place where commands meet a model: each says only what it asks of a reading.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli.lines import seems_a_file
from attnscope.cli.naming import is_of_each_head, of_head
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.cli.asked_lines import Lines
    from attnscope.cli.lines import NumberedText
    from attnscope.cli.options.delivery import Delivery
    from attnscope.cli.options.inputs import Read
    from attnscope.cli.options.model import Request, Wanted
    from attnscope.cli.output import Output
    from attnscope.render.focus import Focus
    from attnscope.render.web.room import Beside
    from attnscope.results import (
        Ablation,
        Dimensions,
        Finding,
        HeadTerms,
        HeadView,
        HeadWeights,
        Projection,
        Report,
        Result,
    )
    from attnscope.session.choosing import Chosen
    from attnscope.session.looking import Names
    from attnscope.session.opening import Check, Opened, Purpose
    from attnscope.session.questions.claims.links import InPrompt
    from attnscope.session.questions.pages import Held
    from attnscope.session.reading import Reading
    from attnscope.session.request import Inputs

    OfHead = HeadWeights | HeadView | HeadTerms | Dimensions | Projection | Report


@dataclass(frozen=True)
class Answer:
    """A result and what of it is looked at.

    `every_head` gives what there is of every head alone, for files called by `{layer}` and `{head}`;
    `place` is where the picture goes when no file was named. `page` gives what a page is made of,
    where that is more than the result; `links` has what is held against the links of other texts.
    """

    result: "Result"
    focus: "Focus | None" = None
    every_head: "Callable[[], Iterable[OfHead]] | None" = None
    place: Path | None = None
    page: "Callable[[], tuple[Result, Beside]] | None" = None
    links: "InPrompt | None" = None


PAGE = ".html"
Ask = Callable[["Reading", "Chosen | None"], Answer]


@dataclass(frozen=True)
class Question:
    """What is asked, of which model and of what it reads, and where the answer goes.

    `whole` says that the model runs to its end whatever is looked at: its decoder reads all that it reads;
    `ranks` that the answer is numbers, and a page of it holds no more weights than it has room for.
    `names` is given the tokens before any weight is read, and refuses what is named and not there.
    `check` in its place is given all that is known of the model by then.
    `over` puts the answers for many texts together; without it they are shown one after the other, as they
    are of a model whose answers are `apart`.
    Of a text that is not the user's `own` nothing is told about how it is read.
    """

    ask: Ask
    request: "Request"
    read: "Read"
    wanted: "Wanted | None"
    delivery: "Delivery"
    output: "Output"
    whole: bool = False
    ranks: bool = False
    names: "Names | None" = None
    check: "Check | None" = None
    over: "str | None" = None
    apart: "Callable[[Opened], bool] | None" = None
    own: bool = True

    def put(self, inputs: "Inputs", purpose: "Purpose") -> None:
        """Load the model, read, ask, and show; of many texts one after the other."""
        if note := seems_a_file(self.read.text or ""):
            self.output.notice(note)
        with self.as_typed(inputs):
            self._put(inputs, purpose)

    def as_typed(self, inputs: "Inputs") -> AbstractContextManager[None]:
        """Commands that lead on read and run what this one does."""
        from attnscope.cli.again import typed
        from attnscope.render.kit.words.command import as_typed

        return as_typed(typed(inputs, self.request, self.wanted))

    def _put(self, inputs: "Inputs", purpose: "Purpose") -> None:
        from attnscope.session.opening import open_model

        opened = open_model(self.request, inputs, self.wanted, purpose, self.output, self._check(inputs))
        if self.read.source is not None:
            asked = replace(self, over=None) if self.apart is not None and self.apart(opened) else self
            asked._lines().put(opened, inputs)
            return
        self.deliver(self.answered(opened, inputs)[1], self.delivery.targets)

    def _lines(self) -> "Lines":
        from attnscope.cli.asked_lines import Lines

        return Lines(self)

    def _check(self, inputs: "Inputs") -> "Check | None":
        if (
            self.check is not None
            or self.names is None
            or (self.read.source is not None and self.over is None)
        ):
            return self.check
        from attnscope.session.looking import names_checked

        if self.read.source is not None:
            return partial(self._lines().check, names=self.names, inputs=inputs)
        return names_checked(self.names, inputs, self.request.trust_remote_code)

    def answered(self, opened: "Opened", inputs: "Inputs") -> "tuple[Reading, Answer]":
        from attnscope.session.listener import Quiet
        from attnscope.session.reading import read_inputs

        looked_at = replace(opened, chosen=None) if self.whole else opened
        reading = read_inputs(looked_at, inputs, self.output if self.own else Quiet())
        if self.paged and not self.ranks and opened.chosen is not None:
            check_room(reading, opened.chosen)
        return reading, self.ask(reading, opened.chosen)

    @property
    def paged(self) -> bool:
        """Whether a page of all that is chosen is to be written, and not of each head alone."""
        pages = [target for target in self.delivery.targets if target.suffix.lower() == PAGE]
        return any(not is_of_each_head(page) for page in pages)

    def deliver(
        self,
        answer: Answer,
        targets: Sequence[Path],
        line: "NumberedText | None" = None,
        *,
        shown: bool = True,
    ) -> None:
        """Files of each head alone, then everything else."""
        if answer.place is not None and not targets and not self.delivery.json:
            targets = [answer.place]
        if of_heads := [target for target in targets if is_of_each_head(target)]:
            targets = [target for target in targets if target not in of_heads]
            self._files_of_heads(answer, of_heads)
        if answer.page is not None and (
            pages := [target for target in targets if target.suffix.lower() == PAGE]
        ):
            targets = [target for target in targets if target not in pages]
            self._pages(answer.page, answer.focus, pages)
        self.output.deliver(
            answer.result, self.delivery, answer.focus, targets=targets, line=line, shown=shown
        )

    def _pages(
        self, make: "Callable[[], tuple[Result, Beside]]", focus: "Focus | None", targets: Sequence[Path]
    ) -> None:
        from attnscope.render.focus import WHOLE

        result, beside = make()
        for target in targets:
            self.output.file(result, target, self.delivery, focus or WHOLE, beside)

    def _files_of_heads(self, answer: Answer, targets: Sequence[Path]) -> None:
        from attnscope.render.focus import WHOLE

        if answer.every_head is None:
            raise InputError(f"cannot write '{targets[0]}': only of a text's heads has each a file")
        from attnscope.results import HeadWeights

        for result in answer.every_head():
            head = result if isinstance(result, HeadWeights) else result.head
            for target in targets:
                place = of_head(target, head.layer, head.head)
                self.output.file(result, place, self.delivery, answer.focus or WHOLE)


def with_heads(result: "Result", held: "Held | None") -> "tuple[Result, Beside]":
    """What a page of a result is made of that does not hold the weights it is about."""
    from attnscope.render.web.room import NOTHING, Beside

    if held is None:
        return result, NOTHING
    return result, Beside(held.full, heads=() if held.overview is None else (held.overview,))


def ranked_heads(
    reading: "Reading", chosen: "Chosen", result: "Finding | Ablation"
) -> "tuple[Result, Beside]":
    """What a page of a ranking is made of: all of its heads where they have room, else the best of them."""
    from attnscope.render.web.room import fits
    from attnscope.session.questions.pages import extent, read_ranked, seen_extent

    whole_extent = extent(reading, chosen)
    whole = whole_extent is None or fits(*whole_extent) or fits(*seen_extent(reading, chosen, whole_extent))
    return with_heads(result, read_ranked(reading, chosen, result, whole=whole))


def check_room(reading: "Reading", chosen: "Chosen") -> None:
    """Refuse a page that would be too large, before the model runs."""
    from attnscope.render.web.room import check_room as check
    from attnscope.render.web.room import fits
    from attnscope.session.questions.pages import extent, seen_extent

    if (whole_extent := extent(reading, chosen)) is not None and not fits(*whole_extent):
        check(*seen_extent(reading, chosen, whole_extent))
