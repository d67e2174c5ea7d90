"""The built-in examples, by name. `theatre` needs a model and is in `attnscope.analysis.worked.theatre`."""

from collections.abc import Callable

import numpy as np

from attnscope.analysis.worked.attention import work_out
from attnscope.analysis.worked.dictionary import look_up
from attnscope.analysis.worked.scale import scale_study
from attnscope.errors import InputError
from attnscope.results.worked import Given, ScaleStudy, Scoring, Worked

TABLE = {"apple": 9.0, "banana": 6.0, "chair": 3.0}
UNKNOWN = "fruit"
ILLUSTRATIVE = (
    "illustrative: the keys were chosen to give the scaled scores 0.44, 0.37 and 0.16, the values freely",
    "a dictionary has no answer for fruit, since no key is spelled like that; here its vector resembles "
    "those of apple and banana more than that of chair (see --example dictionary)",
)


def _array(*rows: tuple[float, ...]) -> Given:
    return Given(np.array(rows, dtype=np.float64))


def fruit() -> Worked:
    """What is `fruit`, asked of three things with attributes."""
    arrays = {
        "q": _array((0.8, 0.2, 0.1)),
        "k": _array((0.9, 0.1, 0.2), (0.7, 0.1, 0.6), (0.1, 0.9, 0.2)),
        "v": _array((2, 9, 5), (1, 6, 4), (40, 3, 9)),
    }
    names = {
        "query_names": (UNKNOWN,),
        "key_names": tuple(TABLE),
        "dims": ("sweetness", "durability", "texture"),
        "value_dims": ("price", "liking", "use"),
    }
    return work_out(arrays, names=names, name="fruit", notes=ILLUSTRATIVE)


def tensors() -> Worked:
    """One query, three keys, two value dimensions."""
    arrays = {
        "q": _array((1, 0, 1)),
        "k": _array((1, 0, 1), (0, 1, 0), (1, 1, 0)),
        "v": _array((1, 2), (3, 4), (5, 6)),
    }
    return work_out(arrays, name="tensors", notes=("more of these: tensors-identity, tensors-sharp",))


def tensors_identity() -> Worked:
    """Keys along the axes: the query is its own score."""
    arrays = {"q": _array((1, 0)), "k": _array((1, 0), (0, 1)), "v": _array((1, 2), (3, 4))}
    return work_out(arrays, name="tensors-identity")


def tensors_sharp() -> Worked:
    """Scores 11 apart and not scaled: nearly a dictionary again."""
    arrays = {"q": _array((1, 0)), "k": _array((1, 0), (-10, 1)), "v": _array((10, 20), (30, 40))}
    return work_out(arrays, name="tensors-sharp", scoring=Scoring.DOT)


def dictionary() -> Worked:
    """The keys of a dictionary, and a word that is none of them."""
    return look_up(TABLE, (*TABLE, UNKNOWN), name="dictionary")


EXAMPLES: dict[str, Callable[[], Worked | ScaleStudy]] = {
    "dictionary": dictionary,
    "fruit": fruit,
    "tensors": tensors,
    "tensors-identity": tensors_identity,
    "tensors-sharp": tensors_sharp,
    "why-scale": scale_study,
}


def example(name: str) -> Worked | ScaleStudy:
    """The example called `name`; `InputError` that lists them where there is none."""
    if name not in EXAMPLES:
        raise InputError(f"no example '{name}': {', '.join(sorted([*EXAMPLES, 'theatre']))}")
    return EXAMPLES[name]()
