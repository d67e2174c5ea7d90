"""Why a model answers what it answers: what each of its parts brings to the answer directly."""

from dataclasses import dataclass, replace

from attnscope.analysis.claims.why.answer import contributions
from attnscope.capture import provenance_of
from attnscope.capture.faults import if_it_runs
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.results.claims.contributions import Contributions
from attnscope.session.questions.claims.ablation import read_other
from attnscope.session.questions.claims.answers import question_of
from attnscope.session.questions.claims.why import MOST
from attnscope.session.reading import Reading

OF_ALL = "why --answer is of all parts of the model: leave the head, --from and --to out"


@dataclass(frozen=True)
class Answering:
    """An answer, another one that it is held against, and the text that parts are put from."""

    answer: str
    against: str | None = None
    patch_from: str | None = None


def told_of(answer: str, against: str | None) -> str:
    """What is asked, in a few words: `“it” and not “they”`."""
    return f"“{answer}”" + ("" if against is None else f" and not “{against}”")


def why_answer(reading: Reading, asked: Answering) -> Contributions:
    """The answer's logit, or how far it lies above the other one's, as a sum over the parts of the model.

    Raises `InputError` for an answer that the model cannot give, and for a model whose sum is not exact.
    """
    model, tokens = reading.model, reading.encoded.tokens
    if reading.asked.goes_on or reading.captured is not None:
        raise InputError("why reads a text at once: leave --generate out")
    if reading.task == "generated":
        raise InputError(
            f"why --answer asks one place of a text, and {model.name} writes a text of its own: it works for "
            "models that fill a [MASK], go on with a text or name a class"
        )
    asked = replace(asked, **reading.filled(vars(asked)))
    question = question_of(reading, asked.answer, asked.against)
    if len(tokens) > MOST:
        raise InputError(f"why holds all of a run at once: up to {MOST} tokens, here are {len(tokens)}")
    other = None if asked.patch_from is None else read_other(reading, asked.patch_from)
    with (
        reading.listener.working("taking the answer apart"),
        if_it_runs(model.module, reading.inputs, model.name),
    ):
        told = contributions(
            model.module,
            reading.inputs,
            find_sites(model.module),
            question,
            None if other is None else other.inputs,
        )
    return Contributions(
        **vars(told),
        tokens=tokens,
        position=question.position,
        provenance=provenance_of(model.module, tokens, {**model.origin(), "route": "untouched"}),
        other_tokens=None if other is None else other.encoded.tokens,
        notes=reading.notes,
    )
