"""Builds a verb's command, with the fields of its questions as options, and runs it.

A question is about one text or about every line of a file. The model is loaded once; each line is answered
alone, or all are summed up. An error in a line is reported with its number, and the other lines go on.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnscope import incoming
from attnscope.cli.options import (
    ArticleRead,
    Delivery,
    PictureDelivery,
    Read,
    SparedRead,
    Writing,
    check_files,
    given,
    is_of_each_line,
    numbered,
    of_head,
    own_place,
    seems_a_file,
)
from attnscope.cli.output import NumberedText, Output, check_delivery, say, summary
from attnscope.cli.panels import grouped
from attnscope.errors import (
    AttnscopeError,
    CertificateError,
    ExceededError,
    InputError,
    NobodyReadsError,
    lacking,
)
from attnscope.register import Verb, there
from attnscope.session.prompts import Line
from attnscope.session.question import Alone, Answer, Files, OfModel, Question, is_of_each_head, verb_of
from attnscope.session.request import ModelRequest, ProvenModel, check_something

if TYPE_CHECKING:
    from attnscope.render.sheets import Focus
    from attnscope.session.choosing import Chosen
    from attnscope.session.opening import Check, Names, Opened
    from attnscope.session.questions.pages import Extent
    from attnscope.session.questions.prompts import Gathered
    from attnscope.session.reading import Reading
    from attnscope.session.request import Inputs


@dataclass(frozen=True)
class Asking:
    """A question with its model, input texts and output files, ready to run.

    `over` is the heading of the summary over many texts; without it answers are shown one after the other.
    Without `own`, notices about reading the text are dropped.
    """

    asked: Question[Any]
    request: ModelRequest
    read: Read
    delivery: Delivery
    output: Output
    over: str | None = None
    own: bool = True

    def put(self, inputs: "Inputs") -> None:
        """Load the model, read the text or each line of a file, answer, and show the answers."""
        purpose = self.asked.purpose(inputs)
        if note := seems_a_file(self.read.text or ""):
            self.output.notice(note)
        from attnscope.session.opening import open_model

        opened = open_model(
            self.request, inputs, self.asked.wanted, purpose, self.output, self._check(inputs)
        )
        if self.read.source is not None:
            asked = replace(self, over=None) if self.asked.apart(opened) else self
            Lines(asked).put(opened, inputs)
            return
        self.deliver(self.answered(opened, inputs)[1], self.delivery.targets)

    def _check(self, inputs: "Inputs") -> "Check | None":
        code = self.request.trust_remote_code
        if (check := self.asked.plan_check) is not None:
            return partial(check, asked=self.asked, code=code)
        if not self.asked.NAMES or (self.read.source is not None and self.over is None):
            return None
        from attnscope.session.opening import check_plan

        if self.read.source is not None:
            return partial(Lines(self).check, names=self.asked.check_names, inputs=inputs)
        return partial(check_plan, names=self.asked.check_names, inputs=inputs, code=code)

    def answered(self, opened: "Opened", inputs: "Inputs") -> "tuple[Reading, Answer[Any]]":
        from attnscope.session.listener import Quiet
        from attnscope.session.reading import read_inputs

        looked_at, chosen = replace(opened, chosen=None) if self.asked.whole else opened, opened.chosen
        reading = read_inputs(looked_at, inputs, self.output if self.own else Quiet())
        if chosen is None:
            return reading, self.asked.answered(reading, chosen)
        if not self.asked.RANKS and Files(tuple(self.delivery.targets)).paged:
            _check_room(reading, chosen)
        answer = self.asked.answered(reading, chosen)
        if self.asked.ranked(answer.result):
            answer = replace(answer, beside=partial(_ranked_heads, reading, chosen, answer.result))
        return reading, answer

    def deliver(
        self,
        answer: Answer[Any],
        targets: Sequence[Path],
        line: "NumberedText | None" = None,
        *,
        shown: bool = True,
    ) -> None:
        """Write the files of single heads, then pages, then all other output."""
        from attnscope.render.sheets import Focus
        from attnscope.render.web.room import Beside

        result, focus = answer.result, Focus(**answer.focus)
        if self.asked.DRAWS and not targets and not self.delivery.json:
            targets = [own_place(verb_of(self.asked), result.head, answer.drawn_by, self.read.media)]
        if of_heads := [target for target in targets if is_of_each_head(target)]:
            targets = [target for target in targets if target not in of_heads]
            self._files_of_heads(answer, focus, of_heads)
        if answer.beside is not None and (pages := Files(tuple(targets)).pages):
            targets = [target for target in targets if target not in pages]
            beside = Beside(**answer.beside())
            for page in pages:
                self.output.file(result, page, self.delivery, focus, beside)
        self.output.deliver(result, self.delivery, focus, targets=targets, line=line, shown=shown)

    def _files_of_heads(self, answer: Answer[Any], focus: "Focus", targets: Sequence[Path]) -> None:
        if answer.every_head is None:
            raise InputError(f"cannot write '{targets[0]}': only of a text's heads has each a file")
        from attnscope.results import HeadWeights

        for result in answer.every_head():
            head = result if isinstance(result, HeadWeights) else result.head
            for target in targets:
                self.output.file(result, of_head(target, head.layer, head.head), self.delivery, focus)


def _without_room(reading: "Reading", chosen: "Chosen") -> "Extent | None":
    """Size of the chosen heads (tokens, layers) where their page may be too large; None where it fits."""
    from attnscope.render.web.room import fits
    from attnscope.session.questions.pages import extent, seen_extent

    whole = extent(reading, chosen)
    return None if whole is None or fits(*whole) else seen_extent(reading, chosen, whole)


def _ranked_heads(reading: "Reading", chosen: "Chosen", result: Any) -> Mapping[str, Any]:
    """Heads to put on the page of a ranking: all if they fit, else the first."""
    from attnscope.render.web.room import fits
    from attnscope.session.questions.pages import read_ranked

    seen = _without_room(reading, chosen)
    return read_ranked(reading, chosen, result.best_heads, whole=seen is None or fits(*seen))


def _check_room(reading: "Reading", chosen: "Chosen") -> None:
    """Raise `InputError` before the model runs where a page of the chosen heads would be too large."""
    from attnscope.render.web.room import check_room

    if (seen := _without_room(reading, chosen)) is not None:
        check_room(*seen)


class Lines:
    """Asks one question of every line of a file, and sums the answers up where `over` is set."""

    def __init__(self, question: Asking) -> None:
        source = question.read.source
        assert source is not None, "lines are those of a file"
        self.question, self.source = question, source
        self.lines, self.delivery = question.read.lines, question.delivery
        self._refused = list[tuple[int, str]]()

    def put(self, opened: "Opened", inputs: "Inputs") -> None:
        """Answer each line, then the summary; exit with the highest code of any line."""
        gathered = None
        if self.question.over is not None:
            from attnscope.session.questions.prompts import Gathered

            gathered = Gathered(self.question.over, incoming.called(self.source.name))
        try:
            with nullcontext() if gathered is None else self.question.output.each_notice_once():
                codes = {line.number: self._of_line(opened, inputs, line, gathered) for line in self.lines}
        finally:
            self._say_refused()
        self._sum_up(codes, gathered)
        if code := max(codes.values()):
            raise typer.Exit(code)

    def _sum_up(self, codes: dict[int, int], gathered: "Gathered | None") -> None:
        result = None if gathered is None or not gathered.answered else gathered.result()
        if result is not None:
            targets = [target for target in self.delivery.targets if not is_of_each_line(target)]
            self.question.output.deliver(result, self.delivery, targets=targets, codes=codes)
        elif self.delivery.json:
            self.question.output.document(summary(codes))

    def check(self, planned: Any, chosen: "Chosen", *, names: "Names", inputs: "Inputs") -> None:
        """Exit before weights load where no line contains what was named; one line that does is enough."""
        from attnscope.session.opening import check_plan

        refused, code = dict[Line, AttnscopeError](), self.question.request.trust_remote_code
        for line in self.lines:
            try:
                its = replace(inputs, text=line.prompt.text, fields=line.prompt.fields)
                check_plan(planned, chosen, names=names, inputs=its, code=code)
                return
            except AttnscopeError as error:
                refused[line] = error
        codes = {line.number: self._refuse(line, error) for line, error in refused.items()}
        self._say_refused()
        self._sum_up(codes, None)
        raise typer.Exit(max(codes.values()))

    def _of_line(
        self, opened: "Opened", inputs: "Inputs", line: Line, gathered: "Gathered | None" = None
    ) -> int:
        answered = False
        try:
            prompt = line.prompt
            inputs = replace(inputs, text=prompt.text, fields=prompt.fields)
            reading, answer = self.question.answered(opened, inputs)
            answered = True
            self._deliver_line(answer, line, prompt.text, alone=gathered is None)
            if gathered is not None:
                gathered.add(line.number, reading, answer.result, answer.links)
        except NobodyReadsError:
            raise
        except AttnscopeError as error:
            # an answer that is not certified stands there and says so
            stands = answered and isinstance(error, CertificateError)
            return self._refuse(line, error, gathered, told=stands)
        except Exception as error:
            if (lack := lacking(error)) is None:
                raise
            return self._refuse(line, lack, gathered)
        return 0

    def _refuse(
        self, line: Line, error: AttnscopeError, gathered: "Gathered | None" = None, *, told: bool = False
    ) -> int:
        self._refused.append((line.number, str(error)))
        if self.delivery.json and not told:
            self.question.output.document(line.refused(error))
        if gathered is not None:
            gathered.refuse(line.number, str(error))
        return error.exit_code

    def _say_refused(self) -> None:
        from attnscope.results.claims.prompts import Refused, by_reason, lines_told

        for reason, lines in by_reason(Refused(*each) for each in self._refused).items():
            say(f"attnscope: {incoming.called(self.source)}:{lines_told(lines)}: {reason}")

    def _deliver_line(self, answer: Answer[Any], line: Line, text: str, *, alone: bool) -> None:
        name, last = f"{incoming.called(self.source)}:{line.number}", self.lines[-1].number
        named = [target for target in self.delivery.targets if alone or is_of_each_line(target)]
        targets = [numbered(target, line.number, last) for target in named]
        told = NumberedText(name, line.number, text)
        self.question.deliver(answer, targets, told, shown=alone or self.delivery.json)


_READS = {(True, False): ArticleRead, (False, True): SparedRead, (False, False): Read}


def command_of(verb: Verb) -> Callable[..., None]:
    """Build the command function of a verb, with the option groups that its questions need."""
    forms: tuple[type[Question[Any]], ...] = verb.forms

    alone = issubclass(forms[0], Alone)

    def command(**given: Any) -> None:
        (put_alone if alone else put)(**given)

    read = _READS[forms[0].ARTICLE, any(form.OWN_TEXTS for form in forms)]
    request = ProvenModel if forms[0].OF_THIS_MODEL else ModelRequest
    groups = {
        **({} if alone else {"read": read}),
        "asked": reduce(or_, forms),
        "delivery": PictureDelivery if forms[0].DRAWS else Delivery,
        **({"writing": Writing} if any(form.WRITES for form in forms) else {}),
        **({"request": request} if not alone or issubclass(forms[-1], OfModel) else {}),
        "output": Output,
    }
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, keyword, annotation=kind) for name, kind in groups.items()]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = verb.name, there(f"{verb.package}.question").__doc__
    return grouped(command)


def put(
    asked: Question[Any],
    read: Read,
    delivery: Delivery,
    request: ModelRequest,
    output: Output,
    writing: Writing | None = None,
) -> None:
    """Run a question about one text or many texts, and show the answer."""
    if asked.OWN_TEXTS and (many := [name for name in ("texts", "fill") if getattr(read, name) is not None]):
        raise InputError(f"the texts are made here: leave --{many[0]} out")
    if not (asked.OWN_TEXTS or asked.ARTICLE):
        check_something(read.text, read.ids, read.image, read.audio, read.texts, read.chat)
    over = None if read.source is None else asked.over
    inputs = read.inputs() if writing is None else read.inputs(writing)
    own = not asked.OWN_TEXTS or inputs.text is not None
    question, inputs = asked.reads(inputs)
    question = question.into(Files(tuple(delivery.targets)))
    check_delivery(delivery, question.KIND, many=over is not None)
    with output.importing():
        import_module(question.ANSWER.partition(":")[0])
    Asking(question, request, read, delivery, output, over, own).put(inputs)


def put_alone(
    asked: Alone[Any], delivery: Delivery, output: Output, request: ModelRequest | None = None
) -> None:
    """Run a question about a model alone, two sides or given numbers, and show the answer."""
    check_delivery(delivery, asked.KIND)
    asked = _with_texts(asked, output)
    with output.importing():
        import_module(asked.ANSWER.partition(":")[0])
    from attnscope.render.sheets import WHOLE, Focus
    from attnscope.render.web.room import Beside, both_fit

    question: Any = asked.into(Files(tuple(delivery.targets), both_fit))
    with output.each_notice_once() if question.over else nullcontext():
        answer = question.answer(request, output)
    focus = Focus(decimals=getattr(asked, "decimals", WHOLE.decimals))
    beside = Beside(**answer.beside()) if answer.beside else None
    output.deliver(answer.result, delivery, focus, beside=beside)
    if answer.exceeded:
        raise ExceededError(answer.exceeded)


def _with_texts(asked: Any, output: Output) -> Any:
    """Replace the question's text fields by their content; `-` is read from standard input."""
    texts = {name: given(getattr(asked, name)) for name in asked.TEXTS}
    check_files(*(getattr(asked, name, None) for name in ("vocab", "image", "audio")))
    for _, remarks in texts.values():
        for remark in remarks:
            output.notice(remark)
    return replace(asked, **{name: text for name, (text, _) in texts.items()}) if texts else asked
