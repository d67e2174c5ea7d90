"""Built-in examples of attention, by name. `theatre` needs a model and is in `verbs.sdpa.head`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.functional import jacobian

from attnscope.arithmetic import softmax
from attnscope.errors import InputError
from attnscope.reference import EXACT
from attnscope.results.steps import Axis, Check, Matrix, Step
from attnscope.verbs.sdpa.attention import work_out
from attnscope.verbs.sdpa.given import typed
from attnscope.verbs.sdpa.result import ScaleStudy, Worked
from attnscope.vocabulary import Scoring

DIMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
QUERIES, KEYS, SEED = 256, 16, 0  # of the scale study
TABLE = {"apple": 9.0, "banana": 6.0, "chair": 3.0}
UNKNOWN = "fruit"


def look_up(table: Mapping[str, float], wanted: Sequence[str], name: str = "") -> Worked:
    """Dictionary lookup of `wanted` in `table`, as attention: the value of the equal key, NaN without one.

    It has the three arrays of attention: a match of 1 for the equal key and 0 for all others, and the values
    weighted by it. A row without a match has nothing to weight.
    """
    keys, queries = Axis("key", tuple(table)), Axis("query", tuple(wanted))
    value = Axis("", ("value",))
    match = np.array([[float(key == query) for key in table] for query in wanted])
    answers = np.array([[table.get(query, np.nan)] for query in wanted])
    values = np.array([[value] for value in table.values()], dtype=np.float64)
    given, compared = Matrix("values", values, keys, value), Matrix("match", match, queries, keys)
    answer = Matrix("answer", answers, queries, value)
    steps = (
        Step("values", given, meaning="one value per key"),
        Step("match", compared, "1 where query is key", "0 for any other word", weights=True),
        Step("found", answer, "the value of the match", "certain, or not to be had"),
    )
    return Worked(name, "dictionary lookup", "the value of the key that equals the query", steps)


NUMBERS = {  # q, k and v
    "fruit": "0.8 0.2 0.1 | 0.9 0.1 0.2; 0.7 0.1 0.6; 0.1 0.9 0.2 | 2 9 5; 1 6 4; 40 3 9",
    "tensors": "1 0 1 | 1 0 1; 0 1 0; 1 1 0 | 1 2; 3 4; 5 6",
    "tensors-identity": "1 0 | 1 0; 0 1 | 1 2; 3 4",
    "tensors-sharp": "1 0 | 1 0; -10 1 | 10 20; 30 40",
}
NAMES = {
    "query_names": (UNKNOWN,),
    "key_names": tuple(TABLE),
    "dims": ("sweetness", "durability", "texture"),
    "value_dims": ("price", "liking", "use"),
}
NOTES = {
    "fruit": (
        "illustrative: the keys were chosen so that the scaled scores are 0.44, 0.37 and 0.16, "
        "the values freely",
        "a dictionary has no answer for fruit, since no key is spelled like that; here its vector "
        "resembles those of apple and banana more than that of chair (see --example dictionary)",
    ),
    "tensors": ("more of these: tensors-identity, tensors-sharp",),
    "tensors-sharp": (
        "scores 11 apart and not scaled: nearly a dictionary again (--decimals 6 shows how nearly)",
    ),
}


def scale_study(dims: tuple[int, ...] = DIMS, seed: int = SEED) -> ScaleStudy:
    """Measure random queries and keys of each size in `dims`, with and without dividing scores by sqrt(d).

    Entries are standard normal, so scores have the standard deviation sqrt(d) (Vaswani et al. 2017,
    footnote 4).
    """
    measured, worst = np.zeros((3, 3, len(dims))), 0.0
    for column, dim in enumerate(dims):
        generator = torch.Generator().manual_seed(seed + dim)
        q = torch.randn(QUERIES, dim, generator=generator, dtype=EXACT)
        k = torch.randn(QUERIES, KEYS, dim, generator=generator, dtype=EXACT)
        scores = torch.einsum("qd,qkd->qk", q, k)
        ways = (scores, scores / math.sqrt(dim), additive_logits(q, k, seed + dim))
        for row, logits in enumerate(ways):
            weights = softmax(logits[None])[0]
            slopes = softmax_jacobian(weights)
            # by automatic differentiation of torch's softmax; rows are independent
            differentiated: Tensor = jacobian(lambda rows: torch.softmax(rows, -1).sum(0), logits)  # type: ignore[no-untyped-call]
            worst = max(worst, float((slopes - differentiated.transpose(0, 1)).abs().max()))
            entropy, sizes = torch.special.entr(weights).sum(-1), slopes.flatten(1).norm(dim=-1)
            measured[:, row, column] = float(logits.std()), float(entropy.mean()), float(sizes.mean())
    what = "the softmax gradient, diag(p) - p pᵀ, against torch's automatic differentiation"
    check = Check.of(what, worst, 8 * float(np.finfo(np.float64).eps))
    spread, entropy, gradient = measured[:, :2]
    return ScaleStudy(dims, KEYS, QUERIES, seed, spread, entropy, gradient, (check,), additive=measured[:, 2])


def additive_logits(
    q: Float[Tensor, "query dim"], k: Float[Tensor, "query key dim"], seed: int
) -> Float[Tensor, "query key"]:
    """Additive scores a . tanh(q Aq + k Ak) (Bahdanau et al. 2015): each term is bounded by its entry of a.

    d_a = d, and every entry is from N(0, 1/d) as layers usually start. Vaswani et al. (2017, section 3.2.1)
    compare it with dot products that grow with d.
    """
    dim, generator = q.shape[1], torch.Generator().manual_seed(seed)
    wq, wk = (torch.randn(dim, dim, generator=generator, dtype=EXACT) / math.sqrt(dim) for _ in range(2))
    vector = torch.randn(dim, generator=generator, dtype=EXACT) / math.sqrt(dim)
    return torch.tanh((q @ wq)[:, None] + k @ wk) @ vector


def softmax_jacobian(weights: Float[Tensor, "query key"]) -> Float[Tensor, "query key key"]:
    """Jacobian of the softmax, diag(p) - p p^T, for each row."""
    return torch.diag_embed(weights) - weights[:, :, None] * weights[:, None, :]


OTHERS: dict[str, Callable[[], Worked | ScaleStudy]] = {
    "dictionary": lambda: look_up(TABLE, (*TABLE, UNKNOWN), name="dictionary"),
    "why-scale": scale_study,
}
EXAMPLES = tuple(sorted((*NUMBERS, *OTHERS, "theatre")))


def example(name: str, scoring: Scoring | None = None, causal: bool = False) -> Worked | ScaleStudy:
    """Compute the example called `name`, with its own scoring unless `scoring` names another.

    Raises `InputError` for an unknown example, and for options that the example does not take.
    """
    if name not in EXAMPLES:
        raise InputError(f"no example '{name}': {', '.join(EXAMPLES)}")
    if name not in NUMBERS:
        if scoring is not None or causal:
            raise InputError(f"the example {name} is as it is: leave out the mask and the scoring")
        return OTHERS[name]()
    given = {key: typed(rows, key) for key, rows in zip("qkv", NUMBERS[name].split("|"), strict=True)}
    worked = work_out(
        given,
        scoring=scoring or (Scoring.DOT if name == "tensors-sharp" else Scoring.SCALED_DOT),
        causal=causal,
        names=NAMES if name == "fruit" else {},
        name=name,
        notes=NOTES.get(name, ()),
    )
    return replace(worked, warnings=())  # our own arrays are not ambiguous
