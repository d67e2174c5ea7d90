"""`attnscope cite`: which passage an answer came from, by removal beside attention; over cases a referee."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.asking import Answer, Question
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.inputs import Read, decoded
from attnscope.cli.options.model import Request, Wanted
from attnscope.cli.output import Output, check_delivery
from attnscope.cli.panels import SHOWN, Brief
from attnscope.errors import InputError
from attnscope.session.wanted import READS

if TYPE_CHECKING:
    from attnscope.session.choosing import Chosen
    from attnscope.session.questions.claims.passages import Citing
    from attnscope.session.reading import Reading
    from attnscope.session.request import Inputs

AnswerText = Annotated[
    str | None,
    typer.Option(
        "--answer",
        metavar="TEXT",
        help="The answer whose passages are asked for, as if the model had written it behind TEXT.",
    ),
    Brief("the answer whose passage is asked for"),
]
Generate = Annotated[
    int | None,
    typer.Option("--generate", metavar="N", help="Have the model itself answer, in at most N tokens."),
    Brief("have the model answer, in at most N tokens"),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="sentence|passage|word",
        help="What TEXT is cut to. Default: passages, between blank lines, else sentences. The last one is "
        "the question and stays: of sentences all from the last one with a question mark on.",
    ),
    Brief("cut by sentence or passage (blank lines)", metavar="UNIT"),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="TOKENS",
        help="Where the passages are, all else stays: a message (role:user), the first and last position.",
    ),
]
PassagesFile = Annotated[
    Path | None,
    typer.Option(
        "--passages",
        metavar="FILE",
        help="A JSON list of passages, put in where TEXT says {passages}, else before it.",
    ),
    Brief("a JSON list, put in where TEXT says {passages}"),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        "--gold",
        metavar="FILE",
        help='Cases whose source is known, to score every way to cite by: JSON lines {"passages": [...], '
        '"question": "...", "answer": "...", "source": 2}, source null for none of them. TEXT is then the '
        'template that makes a prompt of each: "{passages} Question: {question} Answer:".',
    ),
    Brief("score ways to cite over cases whose source is known"),
]
Subsets = Annotated[
    int | None,
    typer.Option(
        "--subsets",
        metavar="N",
        help="Take N random halves of the passages away in place of each alone, and fit a sparse model to "
        "them. Default: 128 of more than 64 passages.",
    ),
]
DrawSeed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of random halves and of the controls.")
]
NoGradients = Annotated[
    bool,
    typer.Option(
        "--no-gradients",
        help="Leave out the columns that go back through the model by gradients: what is decided stays, in a "
        "third of the time.",
    ),
]


@dataclass(frozen=True)
class CiteOptions:
    """Whose passage is asked for, and what a passage is."""

    PANEL = SHOWN

    answer: AnswerText = None
    generate: Generate = None
    by: By = None
    context: Context = None
    passages: PassagesFile = None
    gold: Gold = None
    subsets: Subsets = None
    seed: DrawSeed = 0
    no_gradients: NoGradients = False

    def citing(self) -> "Citing":
        """The options as the session takes them, checked."""
        from attnscope.session.questions.claims.passages import Citing

        answer, context = (None if each is None else decoded(each) for each in (self.answer, self.context))
        how = self.by, context, self.subsets, self.seed
        return Citing(answer, self.generate, *how, gradients=not self.no_gradients)


def cite(
    read: Read,
    wanted: Annotated[Wanted, READS],
    asked: CiteOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    """Tell which passage an answer came from.

    Every passage is taken away, and what each sentence of the answer loses of its probability decides. Beside
    it stands what attention and gradients give to the passages, and what they would have named alone. A
    passage is named where without it the sentence loses at least half of its probability, and so much more
    than without anything else as luck would seldom show; none of them is an answer too.
    """
    check_delivery(delivery, "Citation" if asked.gold is None else "Referee")
    if read.source is not None:
        raise InputError("--texts are texts alone: cite takes one with its answer, or cases (--gold)")
    if read.target is not None or read.target_ids is not None:
        raise InputError("--target: what the decoder reads here is the answer (--answer)")
    if asked.gold is not None:
        _judge(read, wanted, asked, delivery, request=request, output=output)
        return
    with output.importing():
        citing = asked.citing()
    inputs = _inputs(read, asked, citing)
    from attnscope.session.opening import Purpose
    from attnscope.session.questions.claims.citing import check_passages
    from attnscope.session.questions.claims.citing import cite as cited

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "attention is looked at"
        return Answer(cited(reading, chosen, citing))

    names = partial(check_passages, asked=citing)
    Question(ask, request, read, wanted, delivery, output, names=names).put(inputs, Purpose.ANSWER)


def _inputs(read: Read, asked: CiteOptions, citing: "Citing") -> "Inputs":
    from dataclasses import replace

    from attnscope.session.questions.claims.passages import PASSAGES, passages_in, woven

    inputs = replace(read.inputs(), answer=citing.answer)
    if asked.passages is None:
        if PASSAGES in (inputs.text or ""):
            raise InputError(f"the text says {PASSAGES}: --passages FILE gives them")
        return inputs
    if inputs.text is None:
        raise InputError("--passages are put into TEXT: give the question there")
    prompt = woven(inputs.text, passages_in(asked.passages))
    return replace(inputs, text=prompt.text, fields=prompt.fields)


def _judge(
    read: Read,
    wanted: Annotated[Wanted, READS],
    asked: CiteOptions,
    delivery: Delivery,
    *,
    request: Request,
    output: Output,
) -> None:
    own = {"answer": asked.answer, "by": asked.by, "context": asked.context, "passages": asked.passages}
    for name, value in own.items():
        if value is not None:
            raise InputError(f"--gold has passages and answers itself: leave --{name} out")
    from attnscope.session.opening import Purpose

    with output.importing():
        from attnscope.session.questions.claims.citing import check_passages
        from attnscope.session.questions.claims.judging import Judging, cases_in, judge

    assert asked.gold is not None, "there are cases"
    cases = cases_in(asked.gold)
    how = asked.generate, asked.subsets, asked.seed, not asked.no_gradients
    judging = Judging(cases, read.inputs(), str(asked.gold), *how)

    def ask(reading: "Reading", chosen: "Chosen | None") -> Answer:
        assert chosen is not None, "attention is looked at"
        return Answer(judge(reading, chosen, judging))

    names = partial(check_passages, asked=judging.citing(cases[0]))
    question = Question(ask, request, read, wanted, delivery, output, names=names)
    question.put(judging.first, Purpose.ANSWER)
