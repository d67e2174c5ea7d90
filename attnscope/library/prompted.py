"""Many prompts of one model, and the questions that are answered over all of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from attnscope.errors import AttnscopeError, InputError
from attnscope.library.methods import with_questions
from attnscope.library.readings import Reading
from attnscope.process.machine import each_alone
from attnscope.results import Prediction
from attnscope.results.claims.prompts import Prompts, by_reason, lines_told
from attnscope.session.listener import Listener
from attnscope.session.prompts import Made
from attnscope.session.question import Question, asks_each
from attnscope.session.questions.prompts import Gathered

if TYPE_CHECKING:
    from attnscope.library.typed import OfPrompted
else:
    OfPrompted = object


@each_alone
@partial(with_questions, asked=asks_each)
class Prompted(OfPrompted):
    """Prompts that are read one after the other; each question is asked of all of them.

    A prompt that has no answer is told to the listener, stands in `refused`, and the others go on. Options
    are those of the same question to one `Reading`, among them `layer`, `head`, `layers`, `heads`, `kind`,
    `tower`, `block`, `route`, `words`, `special`, `by`, `seed`, `query`, `key` and its other `options`;
    `field:a` names a field of each prompt. `InputError` where none of the prompts has an answer.
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

    def ask(self, question: Question[Any]) -> Prompts:
        """The answers to a `question`, one for each prompt, and what they have in common."""
        gathered, first = Gathered(question.over or ""), ""
        for number, made in enumerate(self._prompts, start=1):
            try:
                prompt = made()
                reading = self._read(prompt.text, fields=prompt.fields, **self._options)
                answer = reading._answered(question)
                read = reading._whole() if isinstance(answer.result, Prediction) else reading._encoded
                gathered.add(number, read, answer.result, answer.links)
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
