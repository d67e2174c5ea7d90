"""Texts with a fact that is asked for: read with their answer, and what heads look at where it is written.

Of each length the text whose fact stands first and the one whose stands last are certified in full, the
weights that were read of them as of all others held against what is recomputed. Of a text that is too long
to hold all pairs some rows are.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.claims.finding.needles import Planted
from attnscope.analysis.claims.finding.rows import AnyRows, Layer, rows_of
from attnscope.analysis.claims.relations.answers import Sample
from attnscope.attention import Capture
from attnscope.capture.faults import if_it_runs
from attnscope.capture.returned import Returned
from attnscope.capture.routes import Selection
from attnscope.capture.weights import Weights
from attnscope.errors import InputError
from attnscope.reference import exact
from attnscope.results import Provenance, Verdict
from attnscope.results.claims.retrieval import Head, Needle
from attnscope.session.choosing import Chosen
from attnscope.session.entering import complete, encode_inputs
from attnscope.session.listener import Quiet
from attnscope.session.opening import Opened
from attnscope.session.prompts import Field
from attnscope.session.questions.claims.citing import attention_of
from attnscope.session.questions.claims.passages import Answers, Citing, answered
from attnscope.session.questions.claims.rows import (
    check_whole_fits,
    layers_of,
    may_read_rows,
    rows_in,
)
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs


@dataclass(frozen=True, eq=False)
class Asked:
    """A planted text as the model reads it, with its answer, and where both facts stand."""

    planted: Planted
    answers: Answers
    at: tuple[int, ...]
    other_at: tuple[int, ...]

    def needle(self) -> Needle:
        """What was asked, and what the model answers."""
        told, each, reading = self.answers.answered, self.planted, self.answers.reading
        with if_it_runs(reading.model.module, reading.inputs, reading.model.name):
            chances = told.chances()
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
    return Asked(each, answered(one, Citing(each.fact.answer, whole=True)), stand["fact"], stand["other"])


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


class Looks:
    """What every chosen head looks at in text after text, and what is proved of it."""

    provenance: Provenance
    tower: str

    def __init__(self, reading: Reading, chosen: Chosen) -> None:
        self.chosen = chosen
        selection = Selection(chosen.layers, chosen.heads, chosen.kind, chosen.tower.pattern, chosen.route)
        self._weights = Weights(reading.model.module, selection, chosen.block)
        self._sample = Sample(chosen.layers, chosen.heads, chosen.block)
        self._returned = False
        self._verdicts = Counter[Verdict]()

    @property
    def certified(self) -> dict[Verdict, int]:
        """How many heads of the sampled texts have each verdict."""
        return dict(self._verdicts + self._sample.verdicts)

    @property
    def failed(self) -> tuple[Head, ...]:
        """The heads that are not as they were recomputed in any sampled text."""
        return tuple(sorted({*self._sample.failed}))

    def at(self, one: Asked, *, certify: bool) -> Float[np.ndarray, "layer 4 head"]:
        """Of one text; a model whose weights are only returned has these."""
        reading, chosen, queries = one.answers.reading, self.chosen, one.answers.answered.rows
        long = may_read_rows(reading, chosen)
        layers: list[AnyRows] = []
        if long and not certify:
            layers = [*rows_in(reading, chosen, reading.inputs, queries)]
        elif long or self._returned:
            layers = self._told(*attention_of(one.answers, chosen))
        else:
            check_whole_fits(reading, chosen, "retrieval")
            attention = reading.attention(chosen) if certify else None
            if not isinstance(attention, Returned):
                return np.array([one.looks(rows) for rows in self._read(one, attention)])
            self._returned = True
            layers = self._told(attention, *layers_of(attention, chosen))
        return np.array([one.looks(rows_of(layer, chosen.heads, queries)) for layer in layers])

    def _told(
        self, attention: Capture | Returned, layers: Sequence[Layer], verdicts: Mapping[Verdict, int]
    ) -> list[AnyRows]:
        """The same layers; whence they are and what is proved of them is counted."""
        self._verdicts.update(verdicts)
        self.provenance, self.tower = attention.provenance.of_no_text, attention.tower
        return [*layers]

    def _read(self, one: Asked, proof: Capture | None) -> Iterator[Float[np.ndarray, "head row key"]]:
        """The rows that write the answer in a run of their own, which a capture of the text proves."""
        reading, whole = one.answers.reading, dict[int, Tensor]()
        queries = list(one.answers.answered.rows)

        def make(layer: int, weights: Tensor) -> Tensor:
            if proof is not None:
                whole[layer] = weights[0].cpu()
            return exact(weights[0, :, queries]).cpu()

        with if_it_runs(reading.model.module, reading.inputs, reading.model.name):
            rows = self._weights.read(reading.inputs, make)
        if proof is not None:
            self._sample.add(proof, whole, whole)
            self.provenance, self.tower = proof.provenance.of_no_text, proof.tower
        yield from (rows[layer].numpy() for layer in self.chosen.layers)
