"""Tell which passage an answer came from.

Every passage is taken away, and what each sentence of the answer loses of its probability decides. Beside
it stands what attention and gradients give to the passages, and what they would have named alone. A
passage is named where without it the sentence loses at least half of its probability, and so much more
than without anything else as luck would seldom show; none of them is an answer too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import Question, R_co, named
from attnscope.session.wanted import READS
from attnscope.session.which import Heads
from attnscope.vocabulary import PASSAGES, Purpose, Unit

if TYPE_CHECKING:
    from attnscope.session.request import Inputs
    from attnscope.tokens import Tokens
    from attnscope.verbs.cite.result import (
        Citation,  # noqa: F401
        Referee,  # noqa: F401
    )

LEAST_SUBSETS = 8
_PASSAGES = "attnscope.session.questions.passages"
_JUDGING = "attnscope.verbs.cite.answer"

MEANT = option(
    "--answer", metavar="TEXT",
    help="The answer whose passages are asked for, as if the model had written it behind TEXT.",
    brief="the answer whose passage is asked for",
)  # fmt: skip
GENERATE = option(
    "--generate", metavar="N", help="Have the model itself answer, in at most N tokens.",
    brief="have the model answer, in at most N tokens",
)  # fmt: skip
BY = option(
    "--by", metavar="sentence|passage|word", brief_metavar="UNIT",
    help="What TEXT is cut to. Default: passages, between blank lines, else sentences. The last one is "
    "the question and stays: of sentences all from the last one with a question mark on.",
    brief="cut by sentence or passage (blank lines)",
)  # fmt: skip
CONTEXT = option(
    "--context", metavar="TOKENS",
    help="Where the passages are, all else stays: a message (role:user), the first and last position.",
)  # fmt: skip
PASSAGES_OF = option(
    "--passages", metavar="FILE",
    help="A JSON list of passages, put in where TEXT says {passages}, else before it.",
    brief="a JSON list, put in where TEXT says {passages}",
)  # fmt: skip
GOLD = option(
    "--gold", metavar="FILE", usual=None,
    help='Cases whose source is known, to score every way to cite by: JSON lines {"passages": [...], '
    '"question": "...", "answer": "...", "source": 2}, source null for none of them. TEXT is then the '
    'template that makes a prompt of each: "{passages} Question: {question} Answer:".',
    brief="score ways to cite over cases whose source is known",
)  # fmt: skip
SUBSETS = option(
    "--subsets", metavar="N",
    help="Take N random halves of the passages away in place of each alone, and fit a sparse model to "
    "them. Default: 128 of more than 64 passages.",
)  # fmt: skip
SEED = option("--seed", metavar="N", help="Seed of random halves and of the controls.")
GRADIENTS = option(
    "--no-gradients", usual=False,
    help="Leave out the columns that go back through the model by gradients: what is decided stays, in a "
    "third of the time.",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Citing(Heads, Question[R_co]):
    """How passages are taken away, and how long the model writes where no answer is given."""

    TAKES, PURPOSE = READS, Purpose.ANSWER
    NAMES = "attnscope.verbs.cite.answer:check_passages"

    generate: Annotated[int | None, GENERATE] = None
    subsets: Annotated[int | None, SUBSETS] = None
    seed: Annotated[int, SEED] = 0
    gradients: Annotated[bool, GRADIENTS] = True

    def __post_init__(self) -> None:
        if self.generate is not None and self.generate < 1:
            raise InputError(f"--generate is {self.generate}: it takes at least 1 token")
        if self.subsets is not None and self.subsets < LEAST_SUBSETS:
            raise InputError(f"--subsets {self.subsets}: a fit takes at least {LEAST_SUBSETS}")
        super().__post_init__()

    def reads(self, inputs: "Inputs") -> "tuple[Citing[R_co], Inputs]":
        if inputs.given_target:
            raise InputError("--target: what the decoder reads here is the answer (--answer)")
        return self, inputs

    @property
    def over(self) -> str | None:
        raise InputError("--texts are texts alone: cite takes one with its answer, or cases (--gold)")


@dataclass(frozen=True)
class Cite(Citing["Citation"]):
    """Which passage each sentence of an `answer` is from, or of at most `generate` tokens of the model's.

    Each passage is taken away, and what a sentence loses decides; beside it stands what attention and
    gradients give to the passages (`columns`). These are units of the text `by` which it is cut, within
    `context`; by default all but the question at its end. Fields of the text that are called "passage 0",
    "passage 1" and so on are the passages where there are any. With `subsets` as many random halves are
    taken away; without `gradients` their columns are left out, which take most of the time. The answer is
    cut into sentences unless it is asked about as a `whole`.
    """

    METHODS = ("Reading.cite",)
    KIND, ANSWER = "Citation", "attnscope.verbs.cite.answer:cite"

    answer: Annotated[str | None, MEANT] = None
    _: KW_ONLY
    by: Annotated[str | None, BY] = None
    context: Annotated[str | None, CONTEXT] = None
    whole: bool = False

    def __post_init__(self) -> None:
        if self.answer is not None and self.generate is not None:
            raise InputError("--answer TEXT or --generate N: give one of the two")
        if self.answer is not None and not self.answer.strip():
            raise InputError("the answer is empty: --answer takes the text whose passage is asked for")
        if self.by not in (None, Unit.WORD, Unit.SENTENCE, Unit.PASSAGE):
            raise InputError(f"--by {self.by}: passages are cut by word, sentence or passage")
        super().__post_init__()

    def reads(self, inputs: "Inputs") -> "tuple[Cite, Inputs]":
        _, inputs = super().reads(inputs)
        generate = inputs.generate if (self.answer, self.generate) == (None, None) else self.generate
        if self.answer is None and generate is None:
            raise InputError("--answer TEXT or --generate N: say whose sources are asked for")
        inputs = replace(inputs, answer=self.answer, generate=None)
        return replace(self, generate=generate), self.woven(inputs)

    def woven(self, inputs: "Inputs") -> "Inputs":
        """What is read, with the passages that are given."""
        if PASSAGES in (inputs.text or ""):
            raise InputError(f"the text says {PASSAGES}: --passages FILE gives them")
        return inputs


@dataclass(frozen=True, kw_only=True)
class CitePassages(Cite):
    """Which of the `passages` in a file each sentence of an answer is from."""

    AGAIN = False  # the text that is read has the passages in it

    passages: Annotated[Path | None, PASSAGES_OF] = None

    def woven(self, inputs: "Inputs") -> "Inputs":
        if inputs.text is None:
            raise InputError("--passages are put into TEXT: give the question there")
        prompt = named(f"{_PASSAGES}:woven")(inputs.text, named(f"{_PASSAGES}:passages_in")(self.passages))
        return replace(inputs, text=prompt.text, fields=prompt.fields)

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return "passages" in given


@dataclass(frozen=True)
class Judge(Citing["Referee"]):
    """Ways to cite side by side, over the `cases` of a file of JSON lines whose source is known.

    Each has `passages`, a `question`, an `answer` (without one the model writes at most `generate` tokens),
    and its `source`, None for none of them; the `template` makes a prompt of it,
    "{passages} Question: {question} Answer:", behind the `system` message. `subsets` and `gradients` are
    those of `Reading.cite`.
    """

    METHODS = ("Model.cite",)
    KIND, ANSWER, AGAIN = "Referee", f"{_JUDGING}:judge", False

    template: str | None = None
    cases: Annotated[str | Path, GOLD] = ""
    _: KW_ONLY
    system: str | None = None

    def __post_init__(self) -> None:
        if not self.cases:
            raise InputError("no cases: name a file of JSON lines with passages, question, answer and source")
        super().__post_init__()

    @cached_property
    def known(self) -> tuple[Any, ...]:
        """The cases of the file."""
        return tuple(named(f"{_JUDGING}:cases_in")(Path(self.cases)))

    def reads(self, inputs: "Inputs") -> "tuple[Judge, Inputs]":
        _, inputs = super().reads(inputs)
        if self.template is not None:
            inputs = replace(inputs, text=self.template, system=self.system)
        open_ones = [each.line for each in self.known if each.answer is None]
        if open_ones and self.generate is None:
            raise InputError(f"line {open_ones[0]} has no 'answer': --generate N has the model write it")
        return replace(self, template=inputs.text), self.known[0].inputs(inputs)

    def of(self, case: Any) -> Cite:
        """What is asked of one case."""
        generate = None if case.answer is not None else self.generate
        how: dict[str, Any] = {"subsets": self.subsets, "seed": self.seed, "gradients": self.gradients}
        return Cite(case.answer, generate=generate, whole=True, **how)

    def check_names(self, chosen: Any, queries: "Tokens | None", keys: "Tokens") -> None:
        self.of(self.known[0]).check_names(chosen, queries, keys)

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return "cases" in given

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        return f"--gold has passages and answers itself: leave {options[0]} out"


FORMS = (Judge, CitePassages, Cite)
