"""A dictionary: the exact look-up that attention makes gradual."""

from collections.abc import Mapping, Sequence

import numpy as np

from attnscope.results.worked import Axis, Matrix, Step, Worked

WHY = (
    "a key that is not exactly there has no answer, however much it resembles one that is: vectors are "
    "needed, which can be more or less alike"
)


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
    unanswered = [query for query in wanted if query not in table]
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
                "answer",
                Matrix("answer", answers, queries, value),
                "the value of the match",
                "certain, or not to be had",
            ),
        ),
        notes=((f"no answer for {', '.join(unanswered)}: {WHY}",) if unanswered else ()),
    )
