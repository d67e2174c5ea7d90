"""Finds the source passage of every answer sentence, by removal, attention and gradients."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope import incoming
from attnscope.analysis.answers.question import written_at
from attnscope.analysis.controls import wilson
from attnscope.analysis.inputs.attributing import Chance, attributed
from attnscope.analysis.inputs.entrance import of_tokens
from attnscope.analysis.inputs.replacing import Input
from attnscope.capture import Selection
from attnscope.errors import InputError
from attnscope.results import Verdict
from attnscope.results.claims.attributed import ByGradients
from attnscope.results.claims.prompts import Refused
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened
from attnscope.session.questions.passages import (
    MOST_EACH,
    SUBSETS,
    Answers,
    answered,
    attention_behind,
    cut,
    text_of,
    woven,
)
from attnscope.session.questions.replacing import MOST_HELD, replacement
from attnscope.session.questions.rows import notes_of
from attnscope.session.reading import Reading, complete, encode_inputs
from attnscope.session.request import Inputs
from attnscope.tokens import Tokens
from attnscope.verbs.cite.question import Cite, Judge
from attnscope.verbs.cite.result import (
    ATTENTION,
    BY_NORM,
    COPYING,
    FIT,
    LONGEST,
    NEAREST,
    WORDS,
    Citation,
    Column,
    Judged,
    Method,
    Referee,
    Score,
    Statement,
)
from attnscope.verbs.cite.taking import Groups, Taken, looked, taken_away
from attnscope.vocabulary import Kind, Route


def check_passages(chosen: Chosen, queries: Tokens | None, keys: Tokens, asked: Cite) -> None:
    """Raises `InputError` for a model that writes no text, and for a text without two passages."""
    _check_kind(chosen)
    cut(keys, asked.by, asked.context)


def _check_kind(chosen: Chosen) -> None:
    if chosen.kind is Kind.ENCODER:
        raise InputError(
            "cite asks what a model wrote, and where its words are from: this one fills in blanks or tells "
            "classes or places (flow and ablate ask what those hang on)"
        )


def cite(reading: Reading, chosen: Chosen, asked: Cite) -> Citation:
    """Values by removal, attention and gradients of each passage, for every sentence of the answer.

    `InputError` where there are fewer than two passages or no answer, and for a model that writes no text.
    """
    _check_kind(chosen)
    parts = cut(reading.encoded.tokens, asked.by, asked.context, reading.asked.prompt.fields)
    answers = answered(reading, asked.answer, asked.generate, asked.whole)
    passages = [each.positions for each in parts.passages]
    subsets = asked.subsets or (SUBSETS if len(passages) > MOST_EACH else None)
    with answers.reading.running(f"removing {len(passages)} passages"):
        taken = taken_away(answers.answered, answers.sentences, passages, subsets, asked.seed)
    attention, layers, certified = attention_behind(answers, chosen)
    told, tokens = answers.answered, answers.reading.encoded.tokens
    seen = looked(layers, chosen.heads, told.rows, told.ids, tokens.ids, passages, answers.sentences)
    none = "no head's strongest key among the passages is the token that is written"
    unknown = "the way out of the heads is not known"
    return Citation(
        tokens=tokens,
        passages=parts.passages,
        answer=text_of(answers.tokens, answers.positions),
        statements=tuple(_statements(answers, taken)),
        columns=(
            Column(ATTENTION, seen.attention),
            Column(COPYING, seen.copying, none if seen.copying is None else ""),
            Column(BY_NORM, seen.by_norm, unknown if seen.by_norm is None else ""),
            *_by_gradients(answers, chosen, passages, asked.gradients),
        ),
        lost=taken.lost,
        kept=parts.kept,
        how=answers.how,
        kind=chosen.kind,
        layers=chosen.layers,
        heads=chosen.heads,
        copying=seen.heads,
        floor=taken.floor,
        certified=certified,
        provenance=attention.provenance,
        by=parts.by,
        answer_tokens=answers.tokens if told.apart else None,
        subsets=taken.subsets,
        weights=taken.weights,
        seed=asked.seed,
        tower=attention.tower,
        notes=(*reading.notes, *notes_of(attention, layers)),
    )


def _statements(answers: Answers, taken: Taken) -> Iterator[Statement]:
    for i, sentence in enumerate(answers.sentences):
        positions = tuple(answers.positions[each] for each in sentence)
        said, before, gone = text_of(answers.tokens, positions), taken.before[i], taken.without_all[i]
        beside = taken.candidates[i], taken.controls[i], taken.r2[i]
        yield Statement(said, positions, float(before), float(gone), *beside)


def _by_gradients(answers: Answers, chosen: Chosen, passages: Groups, wanted: bool) -> tuple[Column, ...]:
    """Gradient attributions of each sentence's log probability, summed over the tokens of each passage."""
    reading, told = answers.reading, answers.answered
    if not wanted or told.length > MOST_HELD:
        why = f"all of a run is kept for it: up to {MOST_HELD} positions" if wanted else "left out"
        return tuple(Column(Method(each), None, why) for each in ByGradients)
    model, places = reading.model.module, tuple(map(tuple, passages))
    selection: Selection | str = chosen.selection()
    if chosen.route is Route.RETURNED:
        selection = "weights that a model returns have no gradient here"
    elif told.apart:
        selection = "attention to another text is no square that could be multiplied"
    found = dict[str, list[np.ndarray]]()
    absent = dict[str, str]()
    with reading.running("following the answer back by gradients"):
        try:
            entrance = of_tokens(model, reading.inputs, Input(told.name, places, replacement(reading).id))
        except InputError as error:
            return tuple(Column(Method(each), None, str(error)) for each in ByGradients)
        for sentence in answers.sentences:
            rows, ids = ([each[i] for i in sentence] for each in (told.rows, told.ids))
            question = written_at(rows, len(answers.tokens), ids, reading.model.spell)
            measured = Chance(question, tuple(ids))
            for each in attributed(model, entrance, measured, selection, chosen.layers, chosen.heads):
                if each.values is None:
                    absent.setdefault(each.method, each.absent)
                else:
                    values = [float(np.nansum(each.values[list(group)])) for group in places]
                    found.setdefault(each.method, []).append(np.array(values))
    return tuple(
        Column(Method(each), None if each in absent else np.array(found[each]), absent.get(each, ""))
        for each in ByGradients
    )


_KEYS = "passages", "question", "source"


@dataclass(frozen=True)
class Known:
    """A case of a file: passages, a question, an answer (None: the model writes it), and source passages."""

    line: int
    passages: tuple[str, ...]
    question: str
    answer: str | None
    source: tuple[int, ...]

    def inputs(self, template: Inputs) -> Inputs:
        """`template` with its placeholders filled by this case; `InputError` where they do not fit."""
        prompt = woven(template.text or "", self.passages, self.question)
        return replace(template, text=prompt.text, fields=prompt.fields, answer=self.answer)


def cases_in(file: Path) -> tuple[Known, ...]:
    """Reads the cases of a JSON Lines file; `InputError` names the malformed line."""
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
    """Cites every case with the model of `reading`, and scores the methods; unusable lines are left out."""
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


DRAWS = 1000  # of the cases, for the interval of a mean
_OUTER = 0.05
_WORD = re.compile(r"\w+")


def judged(
    line: int, result: Citation, question: str, source: tuple[int, ...], methods: Sequence[str]
) -> Judged:
    """One case's ranks and top values by each method; its answer is cited as a whole."""
    asked = {*_WORD.findall(f"{question} {result.answer}".casefold())}
    texts = [{*_WORD.findall(each.text.casefold())} for each in result.passages]
    given: Mapping[str, Float[np.ndarray, " passage"]] = {
        **{name: each[0] for name, each in result.methods.items()},
        LONGEST: np.array([float(len(each.positions)) for each in result.passages]),
        NEAREST: np.array([float(each.positions[-1]) for each in result.passages]),
        WORDS: np.array([len(asked & each) / max(len(asked), 1) for each in texts]),
    }
    every = [given.get(method) for method in methods]
    return Judged(
        line,
        question,
        result.answer,
        result.statements[0].probability,
        source,
        len(result.passages),
        result.sources[0],
        tuple(math.nan if each is None else rank(each, source) for each in every),
        tuple(math.nan if each is None else float(np.nanmax(each)) for each in every),
    )


def rank(values: Float[np.ndarray, " passage"], source: Sequence[int]) -> float:
    """The rank of the best source, ties at the middle of their places; NaN without a source."""
    if not source:
        return math.nan
    known = np.nan_to_num(values, nan=-np.inf)
    best = max(float(known[each]) for each in source)
    others = np.delete(known, list(source))
    return 1.0 + float((others > best).sum()) + float((others == best).sum()) / 2


def scored(cases: Sequence[Judged], method: Method, number: int, seed: int = 0) -> Score:
    """Score of one method, whose ranks and tops stand at `number` in each case."""
    ranks = np.array([each.ranks[number] for each in cases])
    known = ranks[~np.isnan(ranks)]
    tells = _tells(
        [each.tops[number] for each in cases if each.source],
        [each.tops[number] for each in cases if not each.source],
    )
    if not len(known):
        nothing = math.nan, math.nan, math.nan
        return Score(method, 0, *nothing, *nothing, tells)
    top1 = float((known == 1).mean())
    gained = 1 / known
    drawn = np.random.default_rng(seed).integers(0, len(known), (DRAWS, len(known)))
    low, high = np.quantile(gained[drawn].mean(axis=1), (_OUTER / 2, 1 - _OUTER / 2)).tolist()
    own = top1, *wilson(top1, len(known)), float(gained.mean()), low, high
    return Score(method, len(known), *own, tells)


def _tells(sourced: Sequence[float], none: Sequence[float]) -> float:
    """Area under the curve: chance that a value of `sourced` exceeds one of `none`, ties counted half."""
    one, other = (np.array([each for each in side if not math.isnan(each)]) for side in (sourced, none))
    if not len(one) or not len(other):
        return math.nan
    above = (one[:, None] > other).mean() + (one[:, None] == other).mean() / 2
    return float(above)
