"""Answers questions in background threads, most urgent first, each once, and keeps the answers.

A question that is no longer wanted is not begun, and stopped if possible. An error becomes its answer
(`Failed`). While a head is wanted, no layer of the grid is begun.
"""

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

from attnscope.errors import AttnscopeError, one_line
from attnscope.explore.questions import Lane, OfLayer, Question
from attnscope.explore.source import Source

_KEPT = 4096  # answers
_GLANCE = 0.03  # seconds between two looks at whether it is done
_HELD = 256 * 2**20  # bytes of the heads among them


class _Stopped(SystemExit):
    """Raised inside a `Work` thread to stop it; the thread ends silently."""


class Work:
    """A call on its own thread that can be stopped half-way. It starts at once.

    The call must not hold locks or need cleaning up.
    """

    def __init__(self, what: Callable[[], Any]) -> None:
        self._what = what
        self.answer: Any = None
        self.done = False
        self._thread = Thread(target=self._run, name="explore: stoppable", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(_Stopped):
            self.answer = self._what()
            self.done = True

    def stop(self) -> None:
        """Stop at the thread's next line of Python; the answer is lost."""
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(_Stopped)
            )


@dataclass(frozen=True)
class Failed:
    """A failed question: the reason in one line."""

    why: str


def attempt(what: Callable[[], Any]) -> Any:
    """The result of a call, or `Failed` with the user's error in its words, other errors by type."""
    try:
        return what()
    except AttnscopeError as error:
        return Failed(str(error))
    except MemoryError:
        return Failed("there is not enough memory for this")
    except Exception as error:
        return Failed(f"this went wrong ({type(error).__name__}): {one_line(error)}")


class Desk:
    """Queue of wanted questions in order of urgency; calls `done` after every answer."""

    def __init__(self, source: Source, done: Callable[[Question], object]) -> None:
        self._source, self._done = source, done
        self._changed = Condition()
        self._wanted: Sequence[Question] = ()
        self._asked: dict[Lane, Question] = {}
        self._answers: OrderedDict[Question, Any] = OrderedDict()
        self._closed = False
        self._lanes: list[Thread] = []

    def want(self, questions: Sequence[Question]) -> None:
        """Replace the wanted questions by these."""
        with self._changed:
            self._wanted = tuple(questions)
            for question in questions:
                if question in self._answers:
                    self._answers.move_to_end(question)
            self._changed.notify_all()
        if not self._lanes:
            # threads that a slow model holds do not keep the program from ending
            self._lanes = [Thread(target=self._work, args=(lane,), daemon=True) for lane in Lane]
            for thread in self._lanes:
                thread.start()

    def find(self, question: Question) -> Any:
        """The answer to a question, or None where it is not known yet."""
        return self._answers.get(question)

    @property
    def open(self) -> list[Question]:
        """Wanted questions without an answer."""
        with self._changed:
            return [question for question in self._wanted if question not in self._answers]

    @property
    def busy(self) -> list[Question]:
        """Questions being answered right now."""
        with self._changed:
            return list(self._asked.values())

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self, lane: Lane) -> None:
        while (question := self._next(lane)) is not None:
            answer = self._ask(question)
            with self._changed:
                del self._asked[lane]
                if answer is not None:
                    self._answers[question] = answer
                self._forget()
                self._changed.notify_all()
            if not self._closed:
                self._done(question)

    def _ask(self, question: Question) -> Any:
        """Answer a question; None where it was stopped because it is no longer wanted."""
        if not question.stoppable:
            return attempt(lambda: self._source.answer(question))
        work = Work(lambda: attempt(lambda: self._source.answer(question)))
        with self._changed:
            while not work.done and not self._closed and question in self._wanted:
                self._changed.wait(_GLANCE)
        if not work.done:
            work.stop()
        return work.answer

    def _next(self, lane: Lane) -> Question | None:
        with self._changed:
            while not self._closed:
                mine = (
                    question
                    for question in self._wanted
                    if question.lane is lane and question not in self._answers
                )
                next_question = next(mine, None)
                if next_question is not None and not self._gives_way(next_question):
                    self._asked[lane] = next_question
                    return next_question
                self._changed.wait()
        return None

    def _gives_way(self, question: Question) -> bool:
        return isinstance(question, OfLayer) and any(
            wanted.lane is Lane.QUICK and wanted not in self._answers for wanted in self._wanted
        )

    def _forget(self) -> None:
        wanted = set(self._wanted)
        held = sum(_size(answer) for answer in self._answers.values())
        for question in list(self._answers):
            if len(self._answers) <= _KEPT and held <= _HELD:
                return
            if question not in wanted:
                held -= _size(self._answers.pop(question))


def _size(answer: Any) -> int:
    weights = getattr(answer, "weights", None)
    return 5 * int(getattr(weights, "nbytes", 0))
