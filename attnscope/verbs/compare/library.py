"""The library's functions that compare two readings, two runs, two corpora or two models."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from attnscope.errors import InputError
from attnscope.library.readings import Reading
from attnscope.process.machine import alone
from attnscope.results import Comparison, CorpusDifference, Difference, Drift
from attnscope.session.choosing import choose
from attnscope.session.listener import Listener, Log
from attnscope.session.opening import Opened
from attnscope.session.question import taking
from attnscope.session.request import ModelRequest
from attnscope.verbs.compare.drift import drift_of
from attnscope.verbs.compare.question import OnTwoSides, Runs, Tuned, Word
from attnscope.verbs.compare.words import compare_in_layers, compare_readings


@alone
@taking(Word)
def compare(a: Reading, b: Reading, asked: Word) -> Comparison:
    """Compares one `word` in two readings `a` and `b`, of one model or two, or in two layers of one reading.

    In `b` it is `word_b`, where that is another one; with `layer_b` both are the same reading. How alike its
    vectors are in every layer, and one head in full: of those that `layer` and `head` name the one that
    differs most. With `words` a word may have been cut into pieces; `special` tokens are shown, hidden in the
    rows that are shown, or with `renormalise` left out of all rows. `by`, `kind`, `tower` and `route` are
    those of `Reading`, `block` is 0. Likeness is a cosine, -1 to 1; raises `InputError` for a word that is
    not there.
    """
    wanted = asked.wanted.all_layers
    if asked.layer_b is not None and a is not b:
        raise InputError("layer_b compares two layers of one reading: give the same reading twice")
    if asked.layer_b is not None:
        found = compare_in_layers(a._read(wanted), asked).result
    else:
        found = compare_readings(a._read(wanted), b._read(wanted), asked).result
    with suppress(InputError):  # of what no command asks
        first, second = vars(a._inputs), vars(b._inputs)
        other = {
            f"{name}_b": second[name] for name in ("text", "target", "ids") if second[name] != first[name]
        }
        sides = OnTwoSides(**vars(asked), **{name: first[name] for name in OnTwoSides.READS}, **other)
        if a._model is b._model and sides.inputs == (a._inputs, b._inputs):
            sides.known_to(found)
    return found


@alone
@taking(Runs)
def difference(asked: Runs) -> Difference | CorpusDifference:
    return asked.answer(cast(Any, None), Log()).result  # no model is asked for


def compare_models(before: Opened, asked: Tuned, listener: Listener) -> Drift:
    """Compares an open model with its tuned form, which is open too or is opened here."""
    from attnscope.library.models import Model, opened

    tuned = asked.tuned
    other = tuned if isinstance(tuned, Model) else opened(ModelRequest(str(tuned)), listener)
    other._remark()
    after = replace(other._opened, chosen=choose(other._opened.model, asked.wanted, listener, sensed=False))
    return drift_of(before, after, asked, listener)
