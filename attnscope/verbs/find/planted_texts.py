"""Texts with a fact that is asked for: read with their answer, and what heads look at where it is written.

One run of each tells what the model answers and has the rows of weights that do it. Of each length the text
whose fact stands first and the one whose stands last are certified in that very run, in full; whether heads'
answers act is tried on a fact and its question alone. Of a text that is too long to hold all pairs some rows
are certified, in a run of their own in which that is tried as well.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.answers.question import LogChances
from attnscope.analysis.rows import AnyRows, Layer, Sample, rows_of
from attnscope.attention import AttentionCall, Capture
from attnscope.capture.long.run import sample_rows
from attnscope.capture.returned import Returned
from attnscope.capture.running import without_cache
from attnscope.capture.weights import End, OneText, Source, Weights
from attnscope.errors import InputError
from attnscope.reference import exact, place
from attnscope.results import Provenance, Verdict
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened
from attnscope.session.prompts import Field
from attnscope.session.questions.passages import Answers, answered, attention_behind
from attnscope.session.questions.rows import check_whole_fits, may_read_rows, rows_in
from attnscope.session.reading import Reading, complete, encode_inputs
from attnscope.session.request import Inputs
from attnscope.verbs.find.needles import Planted
from attnscope.verbs.find.retrieval_result import Head, Needle
from attnscope.vocabulary import Kind

ACTS = "a fact and its question alone"
_EVERY = 4  # of the rows in which a fault is looked for first


@dataclass(frozen=True, eq=False)
class Asked:
    """A planted text as the model reads it, with its answer, and where both facts stand."""

    planted: Planted
    answers: Answers
    at: tuple[int, ...]
    other_at: tuple[int, ...]

    def needle(self, chances: LogChances) -> Needle:
        """What was asked, and what the model answers with these."""
        told, each = self.answers.answered, self.planted
        right = chances.argmax(-1).tolist() == list(told.ids)
        probability = exp(float(chances[range(len(told.ids)), list(told.ids)].sum()))
        return Needle(
            each.fact.needle, each.fact.question, each.fact.answer, each.other.needle, each.length,
            told.length, each.depth, probability, right,
        )  # fmt: skip

    def looks(self, rows: Float[np.ndarray, "head row key"]) -> Float[np.ndarray, "4 head"]:
        """Of the rows that write the answer: the strongest key in either fact, the weight on either."""
        given = np.nan_to_num(rows)
        strongest = given.argmax(-1)
        inside = [np.isin(strongest, each).mean(-1) for each in (self.at, self.other_at)]
        return np.array([*inside, *(given[..., each].sum(-1).mean(-1) for each in (self.at, self.other_at))])


def size_by(reading: Reading) -> Callable[[str], int]:
    """How many tokens a text has."""
    return lambda text: len(reading.model.tokenizer(text, add_special_tokens=False)["input_ids"])


def read_planted(reading: Reading, chosen: Chosen, each: Planted) -> Asked:
    """The model with that text read; `InputError` where it is not known where in it the facts are."""
    opened = Opened(reading.model, reading.task, chosen)
    words = {"fact": (each.fact.needle, each.at), "other": (each.other.needle, each.other_at)}
    fields = {name: Field(text, (place,)) for name, (text, place) in words.items()}
    inputs = Inputs(each.text, fields=fields, answer=each.fact.answer)
    one = complete(encode_inputs(opened, inputs, Quiet()), chosen)
    stand = {field.name: tuple(field.positions) for field in one.encoded.tokens.fields}
    if len(stand) < len(fields):
        raise InputError(f"{reading.model.name}: its tokenizer does not say where in the text its tokens are")
    return Asked(each, answered(one, each.fact.answer, whole=True), stand["fact"], stand["other"])


def sampled(texts: Sequence[Planted]) -> tuple[int, ...]:
    """The texts that are certified: of each length those whose fact stands first and last."""
    of_length = dict[int, list[int]]()
    for number, each in enumerate(texts):
        of_length.setdefault(each.length, []).append(number)
    ends = (
        end(numbers, key=lambda number: texts[number].depth)
        for numbers in of_length.values()
        for end in (min, max)
    )
    return tuple(sorted({*ends}))


class _Rows(Weights):
    def _handed(self, source: Source, weights: Tensor, call: AttentionCall | None) -> Any:
        return weights, call


class Looks:
    """What every chosen head looks at in text after text, and what is proved of it."""

    provenance: Provenance
    tower: str
    acts = ""  # on what alone it was tried whether heads' answers act; nothing where on all that is certified

    def __init__(self, reading: Reading, chosen: Chosen) -> None:
        self.reading, self.chosen = reading, chosen
        self._weights = _Rows(reading.model.module, chosen.selection(heads=chosen.heads), chosen.block)
        self._sample = Sample(chosen.layers, chosen.heads, chosen.block)
        self._returned = False
        self._tried: dict[int, AttentionCall] = {}
        self._verdicts = Counter[Verdict]()

    @property
    def certified(self) -> dict[Verdict, int]:
        """How many heads of the sampled texts have each verdict."""
        return dict(self._verdicts + self._sample.verdicts)

    @property
    def failed(self) -> tuple[Head, ...]:
        """The heads that are not as they were recomputed in any sampled text."""
        return tuple(sorted({*self._sample.failed}))

    def at(self, one: Asked, *, certify: bool) -> tuple[Needle, Float[np.ndarray, "layer 4 head"]]:
        """What is answered in one text, and looked at; a model whose weights are only returned has these."""
        reading, chosen, told = one.answers.reading, self.chosen, one.answers.answered
        long, said = may_read_rows(reading, chosen), list[LogChances]()
        layers: list[AnyRows] = []

        def end(output: Any) -> None:
            said.append(told.chances_in(output))

        if long and not certify:
            layers = [*rows_in(reading, chosen, reading.inputs, told.rows, end)]
        elif long or self._returned:
            layers = self._told(*attention_behind(one.answers, chosen))
        else:
            check_whole_fits(reading, chosen, "retrieval")
            if certify and not self._tried and not self._try():
                return self.at(one, certify=True)
            rows = self._read(one, end, certify)
            return one.needle(said[0]), np.array([one.looks(each) for each in rows])
        with reading.running():
            chances = said[0] if said else told.chances()
        rows = [rows_of(layer, chosen.heads, told.rows) for layer in layers]
        return one.needle(chances), np.array([one.looks(each) for each in rows])

    def _told(
        self, attention: Capture | Returned, layers: Sequence[Layer], verdicts: Mapping[Verdict, int]
    ) -> list[AnyRows]:
        self._verdicts.update(verdicts)
        self.provenance, self.tower = attention.provenance.of_no_text, attention.tower
        return [*layers]

    def _try(self) -> bool:
        attention, chosen = self.reading.attention(self.chosen), self.chosen
        if isinstance(attention, Returned):
            self._returned = True
            return False
        attention.check_in_place("what heads look at is told by facts")
        self._tried = {layer: attention.call(layer, block=chosen.block) for layer in chosen.layers}
        self.provenance, self.tower = attention.provenance.of_no_text, attention.tower
        self.acts = ACTS
        return True

    def _read(self, one: Asked, end: End, certify: bool) -> list[Float[np.ndarray, "head row key"]]:
        reading, chosen, queries = one.answers.reading, self.chosen, list(one.answers.answered.rows)
        read, keys = reading.tokens_of(chosen.kind), reading.encoded.tokens
        keys = keys if chosen.kind is Kind.CROSS else read
        text = OneText(0, read, self._tried, chosen.heads, keys) if certify else None
        few = sorted({*queries, *sample_rows(len(read), len(keys)).tolist()[::_EVERY]})

        def make(layer: int, passed: tuple[Tensor, AttentionCall | None]) -> Tensor:
            weights, call = passed[0][0].detach(), passed[1]
            if call is not None:
                where = place(weights.device)
                self._sample.certify(call.at(where), weights.to(where), few)
            return exact(weights[:, queries]).cpu()

        inputs = without_cache(reading.model.module, reading.inputs)
        with reading.running():
            rows = self._weights.read(inputs, make, text, end)
        return [rows[layer].numpy() for layer in chosen.layers]
