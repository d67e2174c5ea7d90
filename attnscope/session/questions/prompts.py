"""One question over many prompts: each is answered by itself, and the figures are tabled together."""

from collections import Counter
from typing import Any

import numpy as np

from attnscope.analysis.prediction import chances_at
from attnscope.analysis.prompts import Answered, Figures, OnePrompt, figures_of_answers, tabled
from attnscope.capture import provenance_of
from attnscope.errors import CertificateError, InputError
from attnscope.register import kind_of, there
from attnscope.results import Prediction, Result, Verdict
from attnscope.results.base.origin import Provenance, tallied
from attnscope.results.claims.prompts import Asked, Prompt, Prompts, Refused
from attnscope.session.reading import Reading
from attnscope.vocabulary import Kind, Special, Unit


class Gathered:
    """Collects the answers to one question, prompt by prompt.

    `question` is its text, `file` the prompts' file, if any.
    """

    def __init__(self, question: str, file: str = "") -> None:
        self.question, self.file = question, file
        self.asked: Asked | None = None
        self._prompts: list[Prompt] = []
        self.refused: list[Refused] = []
        self._figures: list[Figures] = []
        self._answers: list[Answered] = []
        self._names: dict[int, str] = {}
        self._verdicts: list[Verdict] = []
        self._provenance: Provenance | None = None
        self._kind: Kind | None = None
        self._tower = ""
        self._by, self._special = Unit.TOKEN, Special.SHOW
        self._links: list[Any] = []
        self._kept: list[OnePrompt] = []
        self._notes: dict[str, None] = {}

    def add(self, line: int, reading: Reading, result: Result, links: Any = None) -> None:
        """Add a prompt's result; `CertificateError` where its certificate failed, so that it counts nowhere.

        `links` are all links of the text with their numbers, also insignificant ones; `together` makes
        figures of those of all texts.
        """
        if result.verdict is Verdict.FAILED:
            raise CertificateError("the certificate FAILED: its numbers are left out")
        if isinstance(result, Prediction):
            self.asked = Asked.PREDICT
            answered = answer_of(reading, result)
            if answered.number is not None:
                self._names[answered.number] = answered.text
            self._answers.append(answered)
        elif links is not None:
            self.asked = Asked.LINKS
            self._links.append(links)
        else:
            kind = kind_of(type(result))
            assert kind is not None, "`over` is asked"
            fields = reading.encoded.tokens.fields
            times = Counter(each.name for each in fields)
            spans = {each.name: each.positions for each in fields if times[each.name] == 1}
            one: OnePrompt = there(kind.many)(result, spans)
            self.asked = one.asked
            self._figures.append(one.figures)
            if one.note is not None:
                self._kept.append(one)
        if result.verdict is not None:
            self._verdicts.append(result.verdict)
        told: Any = result
        self._provenance = self._provenance or told.provenance.of_no_text
        self._kind, self._tower = getattr(result, "kind", None), getattr(result, "tower", "")
        self._by = getattr(result, "by", Unit.TOKEN)
        self._special = getattr(result, "special", Special.SHOW)
        self._notes |= dict.fromkeys(getattr(result, "notes", ()))
        self._prompts.append(Prompt(line, reading.encoded.tokens.sentence))

    def refuse(self, line: int, reason: str) -> None:
        """Record a line without an answer."""
        self.refused.append(Refused(line, reason))

    @property
    def answered(self) -> bool:
        """True where any prompt has an answer."""
        return bool(self._prompts)

    def result(self) -> Prompts:
        """The table of all prompts; `InputError` where no prompt has an answer."""
        if self._provenance is None or self.asked is None:
            raise InputError("no prompt has an answer")
        every, among = self._figures, 0
        if self._answers:
            every = figures_of_answers(self._answers, self._names)
        if self._links:
            every, among, note = self._links[0].together(self._links)
            self._notes[note] = None
        if self._kept and (made := self._kept[0].note) is not None:
            self._notes[made([each.kept for each in self._kept])] = None
        return Prompts(
            asked=self.asked,
            question=self.question,
            file=self.file,
            prompts=tuple(self._prompts),
            refused=tuple(self.refused),
            **vars(tabled(self.asked, every, among)),
            certified=tallied(self._verdicts),
            provenance=self._provenance,
            kind=self._kind,
            tower=self._tower,
            notes=tuple(self._notes),
            by=self._by,
            special=self._special,
        )


def answer_of(reading: Reading, result: Prediction) -> Answered:
    """The first answer of a prediction, with the probabilities of all other answers there, if known."""
    if result.generated is not None:
        tokens = result.generated.tokens
        together = float(np.prod([each.probability for each in tokens])) if tokens else float("nan")
        return Answered(result.generated.text, together, None, None)
    if result.spans:
        return Answered(result.spans[0].name, result.spans[0].probability, None, None)
    first = result.blanks[0] if result.blanks else None
    if first is None and result.classes is None:
        assert result.next_sentence is not None, "a verdict, where nothing else is answered"
        return Answered("follows", result.next_sentence.probability, None, None)
    guess = (result.classes or first).guesses[0]  # type: ignore[union-attr] # one of the two is there
    module = reading.model.module
    provenance = provenance_of(module, reading.encoded.tokens, reading.origin())
    position = None if first is None else first.position
    exclusive = result.classes is None or result.classes.exclusive
    chances = chances_at(module, reading.inputs, position, provenance, exclusive=exclusive)
    return Answered(guess.text, guess.probability, guess.id, chances)
