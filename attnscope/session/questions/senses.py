"""One word in many texts of one model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from attnscope.analysis.claims.comparison.senses import MOST_CONTROLS, separation, together
from attnscope.analysis.claims.comparison.word import Look, Vectors, word_in
from attnscope.errors import InputError
from attnscope.results import Senses, Verdict
from attnscope.results.base.origin import tallied
from attnscope.results.claims.senses import Usage
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener
from attnscope.session.opening import Opened
from attnscope.session.prompts import Field
from attnscope.session.questions.comparison import position_of
from attnscope.session.reading import Reading, open_chosen, read_inputs
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.selection import check_seed
from attnscope.session.wanted import Looking, Wanted

CONTROLS, SEED = 1000, 0


@dataclass(frozen=True)
class LabelledText:
    """A text and the label of its group, "" where there is none; `name` is how a mistake calls it.

    `fields` are parts of it that have names.
    """

    text: str
    label: str = ""
    name: str = ""
    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Shuffling:
    """How many other labelings stand for chance at most, and the seed of those that are shuffled."""

    controls: int = CONTROLS
    seed: int = SEED

    def __post_init__(self) -> None:
        if not 1 <= self.controls <= MOST_CONTROLS:
            raise InputError(f"--controls {self.controls}: give 1 to {MOST_CONTROLS}")
        check_seed(self.seed)


def compare_senses(
    request: ModelRequest,
    inputs: Inputs,
    texts: Sequence[LabelledText],
    word: str,
    wanted: Wanted,
    looking: Looking,
    shuffling: Shuffling,
    listener: Listener,
) -> Senses:
    """The word in every one of `texts`, read one after the other; by their labels where they have some."""
    if len(texts) < 2:
        raise InputError("one text is not enough: a word is compared in two or more")
    unlabelled = [text.name for text in texts if not text.label]
    if unlabelled and len(unlabelled) < len(texts):
        raise InputError(f"{unlabelled[0]} has no label, others have: write LABEL, a tab and the text in all")
    inputs_of_each = [replace(inputs, text=text.text, fields=text.fields) for text in texts]
    first, chosen = open_chosen(request, inputs_of_each[0], wanted, listener)
    opened = Opened(first.model, first.task, chosen)
    words, verdicts = list[_WordInText](), list[Verdict]()
    for i, (text, its_inputs) in enumerate(zip(texts, inputs_of_each, strict=True)):
        reading = first if i == 0 else read_inputs(opened, its_inputs, listener)
        one = _word_in_text(reading, chosen, text, word, looking)
        verdicts.extend(one.verdicts)
        words.append(one)
    by_layer = [np.stack([one.vectors[i] for one in words]) for i in range(len(words[0].vectors))]
    labels = [text.label for text in texts]
    return Senses(
        question=word,
        kind=chosen.kind,
        usages=tuple(one.usage for one in words),
        layers=words[0].layers,
        heads=chosen.heads,
        cosines=np.array([together(vectors) for vectors in by_layer]),
        separation=separation(by_layer, labels, shuffling.controls, shuffling.seed) if labels[0] else None,
        certified=tallied(verdicts),
        provenance=first.capture(chosen, chosen.layers[:1]).provenance,
        by=looking.unit,
    )


@dataclass(frozen=True, eq=False)
class _WordInText:
    usage: Usage
    layers: tuple[int, ...]
    vectors: list[Vectors]
    verdicts: list[Verdict]


def _word_in_text(
    reading: Reading, chosen: Chosen, text: LabelledText, word: str, looking: Looking
) -> _WordInText:
    places, name = position_of(reading, chosen, word, looking, text.name)
    with reading.listener.working(f"reading {text.name or 'the text'}"):
        captured = reading.capture(chosen)
        look = Look(looking.unit, looking.treatment)
        words = [word_in(call, chosen.heads, places, look) for call in captured.calls]
    usage = Usage(text.text, text.label, name, places[0], places)
    verdicts = [certificate.verdict for one in words for certificate in one.certificates]
    return _WordInText(
        usage,
        tuple(call.layer for call in captured.calls),
        [one.vectors["output"] for one in words],
        verdicts,
    )
