"""A result for every case and every optional part of what `sdpa` says of numbers."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attnscope.results.steps import Given
from attnscope.verbs.sdpa import sheet as sheets
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.examples import example, look_up
from attnscope.verbs.sdpa.mistakes import mistaken
from attnscope.verbs.sdpa.result import Case, Pair, Worked

SAID, CASES = sheets.said, Case
TABLE = {"apple": 9.0, "chair": 3.5}
INF = -np.inf


def arrays(**given: list[list[float]]) -> dict[str, Given]:
    return {key: Given(np.array(rows, np.float64)) for key, rows in given.items()}


def scores(*rows: list[float], causal: bool = False) -> Worked:
    return work_out(arrays(scores=list(rows)), causal=causal)


def queries(count: int, causal: bool = False) -> Worked:
    """So many queries on three keys, with values of one number."""
    q, k = [[2.0, 0.0], [0.0, 1.0]][:count], [[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]]
    return work_out(arrays(q=q, k=k, v=[[1.0], [3.0], [10.0]]), causal=causal)


def theatre(*pairs: tuple[str, str, float]) -> Worked:
    """Four tokens that may not look ahead, and what is known of these pairs."""
    names = ("we", "watch", "a", "movie")
    ranked = tuple(Pair(*pair, rank=i + 1, pairs=10) for i, pair in enumerate(pairs))
    given = arrays(scores=[[0.0, 1.0, 2.0, 3.0]] * 4)
    return replace(
        work_out(given, causal=True, names={"query_names": names, "key_names": names}), pairs=ranked
    )


EXAMPLES: dict[str, Callable[[], Worked]] = {
    "output": lambda: example("fruit"),
    "unscaled": lambda: example("tensors-sharp"),
    "several queries": lambda: queries(2),
    "masked": lambda: queries(2, causal=True),
    "one key": lambda: queries(1, causal=True),
    "weights": lambda: scores([0.0, 1.0, 0.5, 2.0, 0.0, -1.0], [0.0] * 6),
    "one key without values": lambda: scores([1.0, INF, INF]),
    "no key": lambda: scores([INF, INF, INF]),
    "pairs": lambda: theatre(("movie", "watch", 0.25), ("a", "watch", 0.5), ("movie", "a", 0.125)),
    "pair": lambda: theatre(("movie", "watch", 0.25)),
    "looked up": lambda: look_up(TABLE, ["chair"]),
    "several looked up": lambda: look_up(TABLE, ["chair", "apple"]),
    "no answer": lambda: look_up(TABLE, ["fruit", "apple", "pear"]),
    "no answer at all": lambda: look_up({"apple": 9.0}, ["fruit"]),
    "other sum": lambda: mistaken(example("fruit"), "softmax-axis"),
    "other weight": lambda: mistaken(queries(2), "no-scale"),
    "alike": lambda: mistaken(queries(1, causal=True), "no-scale"),
    "impossible": lambda: mistaken(example("fruit"), "exchanged"),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "output": (
        Case.OUTPUT,
        "Example fruit",
        "(price 12.36, liking 6.27, use 5.78)",
        "apple (.37), banana (.35)",
    ),
    "unscaled": (Case.OUTPUT, "(10.00, 20.00)", "k0 (1.0) and k1 (<.01). The scores are not divided"),
    "several queries": (Case.OUTPUT, "q0 is 2.80", "k0 (.67), k1 (.16)", "1 more query"),
    "masked": (Case.OUTPUT, "q1", "k1 (.67) and k0 (.33)", "1 more query"),
    "one key": (Case.OUTPUT, "q0 is 1, the value of k0, the only key"),
    "weights": (Case.WEIGHTS, "k3 (.52), k1 (.19), k2 (.12) and 3 more", "all 6", ".17", "1 more query"),
    "one key without values": (Case.WEIGHTS, "q0", "k0, the only key"),
    "pairs": (Case.PAIRS, "“a” looks at “watch” with .50", "all 3 tokens got the same: .33"),
    "looked up": (Case.LOOKED_UP, "“chair” (3.5)", "2 keys"),
    "no answer": (Case.NO_ANSWER, "“fruit” and “pear”", "2 keys", "“apple” (9)"),
    "other sum": (Case.OTHER_SUM, "the wrong axis", "fruit", "3.00, not 1.00"),
    "other weight": (Case.OTHER_WEIGHT, "not divided by √d_k", "q0 gives k0 .79 of its attention, not .67"),
}
