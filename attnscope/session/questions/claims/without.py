"""What a model answers without some of its heads: the likeliest at every place of it, before and after.

How much of that any other heads would do is another question, which takes many runs: `ablation`.
"""

from collections.abc import Callable, Sequence

from attnscope.analysis.claims.ablation import replacing
from attnscope.analysis.claims.ablation.experiment import Head, check_heads, head_counts
from attnscope.analysis.claims.ablation.question import LogChances, log_chances
from attnscope.capture import Selection
from attnscope.capture.faults import if_it_runs
from attnscope.capture.intervening.changes import Change
from attnscope.capture.intervening.reached import experiments_on
from attnscope.errors import InputError
from attnscope.results.claims.effect import Choice, Place, Without
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.answers import question_of
from attnscope.session.reading import Reading
from attnscope.vocabulary import Route

TOP = 5  # of each run


def answer_without(reading: Reading, chosen: Chosen, heads: Sequence[Head]) -> Without:
    """Run the model as it is and without those heads; `InputError` where it answers nothing.

    `reading` has what the decoder reads in full.
    """
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: nothing can be put in the place of an output")
    question = question_of(reading, None)
    module, inputs = reading.model.module, reading.inputs
    selection = Selection(
        kind=chosen.kind, tower=chosen.tower.pattern, route=chosen.route, layers=chosen.layers
    )
    with reading.listener.working("running without heads"), if_it_runs(module, inputs, reading.model.name):
        experiments = experiments_on(module, inputs, selection, question.asked)
        check_heads(heads, head_counts(experiments))
        answer = question.answered(experiments.untouched)
        zeros = replacing.zeros().what
        (outcome,) = experiments.run([tuple(Change(layer, head, zeros) for layer, head in heads)])
    before, after = log_chances(experiments.untouched[0]), log_chances(outcome.scores[0])
    places = tuple(
        _place(before[row], after[row], number, question.name) for row, number in enumerate(answer.ids)
    )
    return Without(tuple(heads), answer.asks, answer.position, places)


def _place(before: LogChances, after: LogChances, meant: int, name: Callable[[int], str]) -> Place:
    likeliest = [chances.topk(min(TOP, len(chances))).indices.tolist() for chances in (before, after)]
    numbers = sorted({meant, *likeliest[0], *likeliest[1]}, key=lambda number: -float(before[number]))
    choices = tuple(
        Choice(name(number), float(before[number].exp()), float(after[number].exp())) for number in numbers
    )
    return Place(choices, numbers.index(meant))
