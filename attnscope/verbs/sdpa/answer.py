"""Answers `sdpa`: attention computed step by step on arrays, a dictionary, an example, or a model's head.

Arrays are read and checked before torch is imported.
"""

from typing import TYPE_CHECKING, Any

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.session.listener import Listener
from attnscope.session.option import slots
from attnscope.session.request import Inputs
from attnscope.verbs.sdpa.question import ARRAYS, AXES, Numbers, Theatre
from attnscope.vocabulary import THEATRE, Scoring

if TYPE_CHECKING:
    from attnscope.results import HeadAttention
    from attnscope.results.steps import Given
    from attnscope.session.choosing import Chosen
    from attnscope.session.opening import Opened
    from attnscope.verbs.sdpa.result import ScaleStudy, Worked

SMALLEST = "fruit"  # the default example
_BIASES = ("bq", "bk", "bv")  # only in files
_SEEN = 4096  # first bytes of a JSON file, with its schema


def work_out(asked: Numbers, listener: Listener) -> "Worked | ScaleStudy":
    """Compute every step of the given arrays, with the wanted mistake; `InputError` for bad arrays."""
    found = _looked_up(asked) if asked.table is not None or asked.lookup else _worked(asked, listener)
    return _finished(found, asked, listener)


def _finished(
    result: "Worked | ScaleStudy", asked: Numbers | Theatre, listener: Listener
) -> "Worked | ScaleStudy":
    if asked.wrong is not None:
        from attnscope.verbs.sdpa.mistakes import mistaken
        from attnscope.verbs.sdpa.result import Worked

        if not isinstance(result, Worked):
            raise InputError("--wrong goes with one example of attention, not with a study")
        result = mistaken(result, asked.wrong)
    for warning in result.warnings:
        listener.notice(warning)
    return result


def through_a_head(opened: "Opened", chosen: "Chosen", asked: Theatre, listener: Listener) -> Any:
    """Run the theatre sentence through one head of a model, captured and certified."""
    from attnscope.capture.circuits.paths import read_factors
    from attnscope.session.reading import read_inputs
    from attnscope.verbs.sdpa.head import theatre

    reading = read_inputs(opened, Inputs(THEATRE), listener)
    if not chosen.one:
        raise InputError("--layer, --head: the theatre needs one head")
    model, (_, head), labels = reading.model.module, chosen.only(), reading.labels(chosen)
    with reading.running("reading the attention"):
        captured, (factors,) = read_factors(
            model, reading.inputs, chosen.selection(heads=chosen.heads), labels
        )
    return _finished(theatre(model, reading.inputs, captured, factors, head), asked, listener)


def _looked_up(asked: Numbers) -> "Worked":
    """Look words up in a dictionary `apple=9, banana=6`; `InputError` for bad or repeated entries."""
    from attnscope.verbs.sdpa.given import number

    entries: dict[str, float] = {}
    for entry in [] if asked.table is None else asked.table.split(","):
        key, equals, value = (part.strip() for part in entry.rpartition("="))
        if not equals or not key:
            raise InputError(f"--table: '{entry.strip()}' is no entry such as apple=9")
        if key in entries:
            raise InputError(f"--table has two values for '{key}'")
        entries[key] = number(value, f"--table, {key}")
    from attnscope.verbs.sdpa.examples import TABLE, look_up

    entries = entries or TABLE
    return look_up(entries, asked.lookup or [*entries], name="dictionary" if asked.table is None else "")


def _worked(asked: Numbers, listener: Listener) -> "Worked | ScaleStudy":
    head = _stored_head(asked)
    given, names = ({}, {}) if head is not None else _read(asked)
    if asked.d_k is not None and "scores" not in given:
        raise InputError("--d-k goes with --scores: the size of other vectors is known")
    if asked.scoring is not None and "scores" in given:
        raise InputError("--scores are given: leave --scoring and --no-scale out (--d-k divides them)")
    if head is not None and asked.in_another_way:
        raise InputError("a head is worked out as its model did it: leave out the mask and the scoring")
    with listener.working("working it out"):
        if head is not None:
            from attnscope.verbs.sdpa.head import work_head

            return work_head(head)
        from attnscope.verbs.sdpa.attention import work_out
        from attnscope.verbs.sdpa.examples import example

        if asked.example is not None or not given:
            return example(asked.example or SMALLEST, asked.scoring and Scoring(asked.scoring), asked.causal)
        scale = None if asked.d_k is None else asked.d_k**-0.5
        scoring = Scoring(asked.scoring or Scoring.SCALED_DOT)
        return work_out(given, scoring=scoring, causal=asked.causal, names=names, scale=scale)


def _read(asked: Numbers) -> "tuple[dict[str, Given], dict[str, tuple[str, ...]]]":
    """Read arrays and axis names, by key, from file and options; `InputError` for what cannot be read.

    Axis names among the options replace those of the file; an array must be given only once.
    """
    from attnscope.verbs.sdpa.given import read_array, read_arrays

    flags = {name: slot.option.name for name, slot in slots(Numbers).items()}
    arrays, names = dict[str, "Given"](), dict[str, tuple[str, ...]]()
    if asked.file is not None:
        arrays, names = read_arrays(asked.file, (*ARRAYS, *_BIASES), AXES)
    for key, given in asked.typed(ARRAYS).items():
        if key in arrays:
            raise InputError(f"{key} is given twice, in {asked.file} and by {flags[key]}")
        arrays[key] = read_array(given, key, flags[key])
    for key, text in asked.typed(AXES).items():
        names[key] = tuple(name.strip() for name in text.split(","))
        if not all(names[key]):
            raise InputError(f"{flags[key]} '{text}' has an empty name: separate names by commas")
    return arrays, names


def _stored_head(asked: Numbers) -> "HeadAttention | None":
    """The head in a file that attnscope wrote; None for any other file, or without a file.

    `InputError` for another stored result, and for a head without q, k and v.
    """
    path = asked.file
    try:
        content = b"" if path is None else incoming.content(path)
    except InputError:
        return None
    if content.startswith(b"PK"):
        ours = b"meta.npy" in content  # named in the index of the archive
    else:
        ours = all(mark in content[:_SEEN] for mark in (b'"attnscope.', b'"schema"'))
    if path is None or not ours:
        return None
    if asked.typed((*ARRAYS, *AXES)):
        raise InputError(f"'{path}' is a head with arrays of its own: leave the others out")
    from attnscope.results import HeadAttention, HeadWeights, load

    result = load(path)
    head = result if isinstance(result, HeadWeights) else getattr(result, "head", None)
    if isinstance(head, HeadAttention):
        return head
    if isinstance(head, HeadWeights):
        raise InputError(f"'{path}' has only weights as the model returned them: no q, k and v to work with")
    raise InputError(
        f"'{path}' is a {type(result).__name__} and not one head: attnscope show {path} shows it"
    )
