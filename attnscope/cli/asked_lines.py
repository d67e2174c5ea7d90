"""A question asked of every line of a file: each answered by itself, or all of them together.

What is wrong with a line is told with its number, and the others go on.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from attnscope import incoming
from attnscope.cli import streams
from attnscope.cli.again import run_again
from attnscope.cli.lines import Line, NumberedText, summary
from attnscope.cli.naming import is_of_each_line, numbered
from attnscope.errors import AttnscopeError, CertificateError, NobodyReadsError, lacking

if TYPE_CHECKING:
    from attnscope.cli.options.delivery import Delivery
    from attnscope.cli.options.inputs import Read
    from attnscope.cli.options.model import Request, Wanted
    from attnscope.cli.output import Output
    from attnscope.results import Result
    from attnscope.session.choosing import Chosen
    from attnscope.session.looking import Names
    from attnscope.session.opening import Opened
    from attnscope.session.questions.claims.links import InPrompt
    from attnscope.session.questions.prompts import Gathered
    from attnscope.session.reading import Reading
    from attnscope.session.request import Inputs


class Answered(Protocol):
    """The answer for one line (`cli.asking.Answer`)."""

    @property
    def result(self) -> "Result": ...
    @property
    def links(self) -> "InPrompt | None": ...


class Question(Protocol):
    """What is asked of each (`cli.asking.Question`)."""

    @property
    def read(self) -> "Read": ...
    @property
    def request(self) -> "Request": ...
    @property
    def wanted(self) -> "Wanted | None": ...
    @property
    def delivery(self) -> "Delivery": ...
    @property
    def output(self) -> "Output": ...
    @property
    def over(self) -> str | None: ...
    def as_typed(self, inputs: "Inputs") -> AbstractContextManager[None]: ...
    def answered(self, opened: "Opened", inputs: "Inputs") -> "tuple[Reading, Any]": ...
    def deliver(
        self, answer: Any, targets: "Sequence[Path]", line: NumberedText | None = None, *, shown: bool = True
    ) -> None: ...


class Lines:
    """The lines that a question is asked of; gathered where it has words for all of them (`over`)."""

    def __init__(self, question: Question) -> None:
        source = question.read.source
        assert source is not None, "lines are those of a file"
        self.question, self.source = question, source
        self.lines, self.delivery = question.read.lines, question.delivery
        self._refused = list[tuple[int, str]]()

    def put(self, opened: "Opened", inputs: "Inputs") -> None:
        """Ask each line, then tell what all of them say together; end with the highest exit code of any."""
        gathered = self._gathered()
        try:
            with nullcontext() if gathered is None else self.question.output.each_notice_once():
                codes = {line.number: self._of_line(opened, inputs, line, gathered) for line in self.lines}
        finally:
            self._say_refused()
        self._sum_up(codes, gathered)
        if code := max(codes.values()):
            raise typer.Exit(code)

    def _gathered(self) -> "Gathered | None":
        if self.question.over is None:
            return None
        from attnscope.session.questions.prompts import Gathered

        return Gathered(self.question.over, incoming.called(self.source.name))

    def _sum_up(self, codes: dict[int, int], gathered: "Gathered | None") -> None:
        result = None if gathered is None or not gathered.answered else gathered.result()
        if result is not None:
            targets = [target for target in self.delivery.targets if not is_of_each_line(target)]
            with run_again(self.question.request, self.question.wanted):
                self.question.output.deliver(result, self.delivery, targets=targets, codes=codes)
        elif self.delivery.json:
            self.question.output.document(summary(codes))

    def check(self, planned: Any, chosen: "Chosen", *, names: "Names", inputs: "Inputs") -> None:
        """End before weights are read where no line has what is named: the first that has will do."""
        from attnscope.session.looking import names_checked

        refused = dict[Line, AttnscopeError]()
        for line in self.lines:
            try:
                its = replace(inputs, text=line.prompt.text, fields=line.prompt.fields)
                names_checked(names, its, self.question.request.trust_remote_code)(planned, chosen)
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
            with self.question.as_typed(inputs):
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
            streams.say(f"attnscope: {incoming.called(self.source)}:{lines_told(lines)}: {reason}")

    def _deliver_line(self, answer: Answered, line: Line, text: str, *, alone: bool) -> None:
        name, last = f"{incoming.called(self.source)}:{line.number}", self.lines[-1].number
        named = [target for target in self.delivery.targets if alone or is_of_each_line(target)]
        targets = [numbered(target, line.number, last) for target in named]
        told = NumberedText(name, line.number, text)
        self.question.deliver(answer, targets, told, shown=alone or self.delivery.json)
