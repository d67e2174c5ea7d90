"""The built-in examples, by name. `theatre` needs a model and is in `attnscope.worked.model_head`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from attnscope.errors import InputError
from attnscope.results.worked import Axis, Given, Matrix, ScaleStudy, Step, Worked
from attnscope.vocabulary import Scoring
from attnscope.worked.attention import work_out
from attnscope.worked.scale import scale_study


def look_up(table: Mapping[str, float], wanted: Sequence[str], name: str = "") -> Worked:
    """Each of `wanted` in `table`: its value with certainty, or NaN where no key is exactly that.

    The same three arrays as in attention: a match of 1 for the key that is equal, 0 for all others, and
    the values weighted by it. A row without a match has nothing to weight.
    """
    keys, queries = Axis("key", tuple(table)), Axis("query", tuple(wanted))
    value = Axis("", ("value",))
    match = np.array([[float(key == query) for key in table] for query in wanted])
    answers = np.array([[table.get(query, np.nan)] for query in wanted])
    values = np.array([[value] for value in table.values()], dtype=np.float64)
    return Worked(
        name=name,
        title="dictionary lookup",
        formula="the value of the key that equals the query",
        steps=(
            Step("values", Matrix("values", values, keys, value), meaning="one value per key"),
            Step(
                "match",
                Matrix("match", match, queries, keys),
                "1 where query is key",
                "0 for any other word",
                weights=True,
            ),
            Step(
                "found",
                Matrix("answer", answers, queries, value),
                "the value of the match",
                "certain, or not to be had",
            ),
        ),
    )


TABLE = {"apple": 9.0, "banana": 6.0, "chair": 3.0}
UNKNOWN = "fruit"
Rows = list[list[float]] | list[list[int]]


@dataclass(frozen=True)
class Numbers:
    """An example that is nothing but its arrays, with names for their axes (keys as in `shapes.NAMES`)."""

    q: Rows
    k: Rows
    v: Rows
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scoring: Scoring = Scoring.SCALED_DOT
    notes: tuple[str, ...] = ()


ARRAYS = {
    "fruit": Numbers(
        q=[[0.8, 0.2, 0.1]],
        k=[[0.9, 0.1, 0.2], [0.7, 0.1, 0.6], [0.1, 0.9, 0.2]],
        v=[[2, 9, 5], [1, 6, 4], [40, 3, 9]],
        names={
            "query_names": (UNKNOWN,),
            "key_names": tuple(TABLE),
            "dims": ("sweetness", "durability", "texture"),
            "value_dims": ("price", "liking", "use"),
        },
        notes=(
            "illustrative: the keys were chosen so that the scaled scores are 0.44, 0.37 and 0.16, "
            "the values freely",
            "a dictionary has no answer for fruit, since no key is spelled like that; here its vector "
            "resembles those of apple and banana more than that of chair (see --example dictionary)",
        ),
    ),
    "tensors": Numbers(
        q=[[1, 0, 1]],
        k=[[1, 0, 1], [0, 1, 0], [1, 1, 0]],
        v=[[1, 2], [3, 4], [5, 6]],
        notes=("more of these: tensors-identity, tensors-sharp",),
    ),
    "tensors-identity": Numbers(q=[[1, 0]], k=[[1, 0], [0, 1]], v=[[1, 2], [3, 4]]),
    "tensors-sharp": Numbers(
        q=[[1, 0]],
        k=[[1, 0], [-10, 1]],
        v=[[10, 20], [30, 40]],
        scoring=Scoring.DOT,
        notes=("scores 11 apart and not scaled: nearly a dictionary again (--decimals 6 shows how nearly)",),
    ),
}


def dictionary() -> Worked:
    """The keys of a dictionary, and a word that is none of them."""
    return look_up(TABLE, (*TABLE, UNKNOWN), name="dictionary")


OTHERS: dict[str, Callable[[], Worked | ScaleStudy]] = {"dictionary": dictionary, "why-scale": scale_study}
EXAMPLES = tuple(sorted((*ARRAYS, *OTHERS, "theatre")))


def example(name: str, scoring: Scoring | None = None, causal: bool = False) -> Worked | ScaleStudy:
    """The example called `name`, with its own scoring unless another one is asked for.

    Raises `InputError` where there is no such example, or none that can be scored or masked.
    """
    if name not in EXAMPLES:
        raise InputError(f"no example '{name}': {', '.join(EXAMPLES)}")
    if name not in ARRAYS:
        if scoring is not None or causal:
            raise InputError(f"the example {name} is as it is: leave out the mask and the scoring")
        return OTHERS[name]()
    given = ARRAYS[name]
    worked = work_out(
        {key: Given(np.array(getattr(given, key), np.float64)) for key in "qkv"},
        scoring=scoring or given.scoring,
        causal=causal,
        names=given.names,
        name=name,
        notes=given.notes,
    )
    return replace(worked, warnings=())  # no doubt about which way round arrays of our own stand
