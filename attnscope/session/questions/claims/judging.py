"""Cases whose source is known, each asked about, and ways to cite side by side over all of them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnscope import incoming
from attnscope.analysis.claims.citing.judging import judged, scored
from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.results.claims.citation import FIT, Method
from attnscope.results.claims.flow import ByGradients
from attnscope.results.claims.prompts import Refused
from attnscope.results.claims.referee import Judged, Referee
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened
from attnscope.session.questions.claims.citing import cite
from attnscope.session.questions.claims.passages import woven
from attnscope.session.reading import Reading, complete, encode_inputs
from attnscope.session.request import Inputs
from attnscope.session.verbs.cite import Judge

_KEYS = "passages", "question", "source"


@dataclass(frozen=True)
class Known:
    """A case of a file: passages, a question, an answer (None: the model writes it), and its source."""

    line: int
    passages: tuple[str, ...]
    question: str
    answer: str | None
    source: tuple[int, ...]

    def inputs(self, template: Inputs) -> Inputs:
        """The prompt that the text of `template` makes of it; `InputError` where it makes none."""
        prompt = woven(template.text or "", self.passages, self.question)
        return replace(template, text=prompt.text, fields=prompt.fields, answer=self.answer)


def cases_in(file: Path) -> tuple[Known, ...]:
    """The cases of a file of JSON lines; `InputError` with the number of the line that is none."""
    name = incoming.named(file)
    incoming.check_there(file, "the cases")
    found = []
    for number, raw in incoming.whole_lines(file, "the cases"):
        if raw.strip():
            found.append(_case(incoming.parsed(raw, f"{name}:{number}"), number, f"{name}:{number}"))
    if not found:
        raise InputError(
            f'{name} has no case: a line is {{"passages": [...], "question": "...", "source": 0}}'
        )
    return tuple(found)


def _case(given: Any, line: int, where: str) -> Known:
    if not isinstance(given, dict):
        raise InputError(f'{where}: a case is {{"passages": [...], "question": "...", "source": 0}}')
    if missing := [key for key in _KEYS if key not in given]:
        raise InputError(
            f"{where}: it has no '{missing[0]}' (source is null where no passage has the answer)"
        )
    passages, question, answer = given["passages"], given["question"], given.get("answer")
    if not isinstance(passages, list) or not all(isinstance(each, str) and each.strip() for each in passages):
        raise InputError(f"{where}: 'passages' is no list of texts")
    if not isinstance(question, str):
        raise InputError(f"{where}: 'question' is no text")
    if answer is not None and (not isinstance(answer, str) or not answer.strip()):
        raise InputError(f"{where}: 'answer' is empty, or no text: leave it out where the model answers")
    stated = given["source"]
    source = [] if stated is None else stated if isinstance(stated, list) else [stated]
    if not all(type(each) is int and 0 <= each < len(passages) for each in source):
        raise InputError(
            f"{where}: 'source' is {stated}: passages are 0 to {len(passages) - 1}, null for none of them"
        )
    return Known(line, tuple(passages), question, answer, tuple(source))


def judge(reading: Reading, chosen: Chosen, asked: Judge) -> Referee:
    """Every case asked about by the model of `reading`; lines that cannot be asked are told and left out."""
    opened, listener = Opened(reading.model, reading.task, chosen), reading.listener
    template = replace(reading.asked, text=asked.template)
    certified, found, refused = dict[Verdict, int](), list[Judged](), list[Refused]()
    left = {*([] if asked.subsets else [FIT]), *([] if asked.gradients else ByGradients)}
    methods, last = tuple(each for each in Method if each not in left), None
    for number, case in enumerate(asked.known, start=1):
        try:
            with listener.working(f"case {number} of {len(asked.known)}"):
                read = complete(encode_inputs(opened, case.inputs(template), Quiet()), chosen)
                last = cite(read, chosen, asked.of(case))
        except InputError as error:
            refused.append(Refused(case.line, str(error)))
            listener.notice(f"line {case.line}: {error}")
            continue
        found.append(judged(case.line, last, case.question, case.source, methods))
        for verdict, count in last.certified.items():
            certified[verdict] = certified.get(verdict, 0) + count
    if last is None:
        raise InputError(f"no case could be asked: line {refused[0].line}: {refused[0].reason}")
    sourced = [case for case in found if case.source]
    lot = [len(case.source) / case.passages for case in sourced]
    answers = [each.answer for each in asked.known]
    written = sum(each is None for each in answers)
    return Referee(
        str(asked.cases),
        tuple(found),
        tuple(scored(found, method, i, asked.seed) for i, method in enumerate(methods)),
        sum(lot) / len(lot) if lot else float("nan"),
        ("given" if not written else "written by the model" if written == len(answers) else "both"),
        chosen.kind,
        certified,
        last.provenance.of_no_text,
        tuple(refused),
        last.tower,
        asked.seed,
    )
