"""Many prompts of one model, and the questions that are answered over all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from attnscope.analysis.claims.finding.shared import InPrompt
from attnscope.errors import AttnscopeError, InputError
from attnscope.process.alone import each_alone
from attnscope.results import Prediction, Result
from attnscope.results.claims.prompts import Prompts, by_reason, lines_told
from attnscope.session.effects import Ablating
from attnscope.session.library.readings import Reading
from attnscope.session.listener import Listener
from attnscope.session.prompts import Made
from attnscope.session.questions.claims.finding import Wish, head_named
from attnscope.session.questions.claims.why import told_of
from attnscope.session.questions.prompts import Gathered

_OF_ABLATING = {each.name for each in fields(Ablating)}


@each_alone
class Prompted:
    """Prompts that are read one after the other; each question is asked of all of them.

    A prompt that has no answer is told to the listener, stands in `refused`, and the others go on. Options
    are those of the same question to one `Reading`, among them `layer`, `head`, `layers`, `heads`, `query`,
    `key` and its other `options`; `field:a` names a field of each prompt. `InputError` where none of the
    prompts has an answer.
    """

    def __init__(
        self,
        read: Callable[..., Reading],
        listener: Listener,
        prompts: Sequence[Made],
        options: Mapping[str, Any],
    ) -> None:
        self._read, self._listener, self._prompts, self._options = read, listener, prompts, options

    def __len__(self) -> int:
        return len(self._prompts)

    def find(self, query: str | int | None = None, key: str | int | None = None, **options: Any) -> Prompts:
        """Heads by what `query` gives to `key`, each prompt beside its own control texts.

        Without any of these, which links between two words or fields most of the prompts have.
        """
        like = options.get("like")
        wish = Wish(query, key, options.get("pattern"), head_named(like) if isinstance(like, str) else like)
        if wish.names_nothing:
            return self._over(wish.phrase, lambda reading: reading._links_in(**options))
        return self._over(wish.phrase, lambda reading: reading.find(query, key, **options))

    def ablate(self, layers: Any = None, heads: Any = None, **options: Any) -> Prompts:
        """What answers become without heads; with `rank` what is foretold, beside what the first ones do."""
        asked = Ablating(**{name: options[name] for name in _OF_ABLATING & {*options}})
        return self._over(asked.told, lambda reading: reading.ablate(layers, heads, **options))

    def flow(self, query: str | int, **options: Any) -> Prompts:
        """What reaches `query`, beside what replacing tokens does."""
        return self._over(f"from {query}", lambda reading: reading.flow(query, **options))

    def predict(self) -> Prompts:
        """What the model answers, beside how likely that answer is in the other prompts."""
        return self._over("what the model answers", lambda reading: reading.predict())

    def predict_layers(self, **options: Any) -> Prompts:
        """What each layer would answer if it were the last."""
        return self._over("what each layer would answer", lambda reading: reading.predict_layers(**options))

    def why(
        self,
        layer: int | None = None,
        head: int | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        **options: Any,
    ) -> Prompts:
        """Why a head looks there: in how many prompts a part of its score has the same sign.

        With `answer` alone, what each part brings to it, or to its lead over `against`.
        """
        asked = f"from {query} at {key}"
        if (answer := options.get("answer")) is not None:
            asked = told_of(answer, options.get("against"))
        given: dict[str, Any] = {"layer": layer, "head": head, "query": query, "key": key, **options}
        return self._over(asked, lambda reading: reading.why(**given))

    def _over(self, question: str, ask: Callable[[Reading], Result | InPrompt]) -> Prompts:
        gathered, first = Gathered(question), ""
        for number, made in enumerate(self._prompts, start=1):
            try:
                prompt = made()
                reading = self._read(prompt.text, fields=prompt.fields, **self._options)
                result = ask(reading)
                answers = isinstance(result, Prediction)
                links = result if isinstance(result, InPrompt) else None
                own = result.links if isinstance(result, InPrompt) else result
                gathered.add(number, reading._whole() if answers else reading._encoded, own, links)
            except AttnscopeError as error:
                gathered.refuse(number, str(error))
                first = first or f"prompt {number}: {error}"
        for reason, numbers in by_reason(gathered.refused).items():
            which = "prompt" if len(numbers) == 1 else "prompts"
            self._listener.notice(f"{which} {lines_told(numbers)}: {reason}")
        if not gathered.answered:
            raise InputError(f"none of the prompts has an answer; {first}")
        return gathered.result()

    def __repr__(self) -> str:
        return f"<{len(self)} prompts>"
