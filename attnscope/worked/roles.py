"""Which arrays a worked example can be given, what each is for, and which of them belong together."""

from collections.abc import Mapping
from dataclasses import dataclass

from attnscope.errors import InputError
from attnscope.results.worked import Axis, Given, Scoring


@dataclass(frozen=True)
class Role:
    """What an array is for: its symbol in formulas, and which axes its rows and columns run along."""

    symbol: str
    rows: str
    columns: str


AXES = {
    "query": Axis("query", ()),
    "key": Axis("key", ()),
    "one": Axis("", ()),
    "T": Axis("token", (), "T"),
    **{symbol: Axis("dimension", (), symbol) for symbol in ("d", "d_q", "d_k", "d_v", "d_a")},
}
VECTORS = {
    "q": Role("Q", "query", "d_k"),
    "k": Role("K", "key", "d_k"),
    "v": Role("V", "key", "d_v"),
}
PROJECTIONS = {
    "x": Role("X", "T", "d"),
    "wq": Role("Wq", "d", "d_k"),
    "wk": Role("Wk", "d", "d_k"),
    "wv": Role("Wv", "d", "d_v"),
}
OPTIONAL = {
    "bq": Role("bq", "one", "d_k"),
    "bk": Role("bk", "one", "d_k"),
    "bv": Role("bv", "one", "d_v"),
}
BACK = {"wo": Role("Wo", "d_v", "d")}
ADDITIVE = {
    "additive_wq": Role("Aq", "d_q", "d_a"),
    "additive_wk": Role("Ak", "d_k", "d_a"),
    "additive_v": Role("a", "one", "d_a"),
}
SCORES = {"scores": Role("scores", "query", "key")}
ROLES = VECTORS | SCORES | PROJECTIONS | BACK | OPTIONAL | ADDITIVE
NAMES = {"query_names": "query", "key_names": "key", "token_names": "T", "dims": "d_k", "value_dims": "d_v"}


def roles_of(given: Mapping[str, Given], scoring: Scoring) -> dict[str, Role]:
    """The roles of the arrays that are given, once these are known to be what one example needs."""
    if "scores" in given:
        return _beside_scores(given)
    start = PROJECTIONS if set(given) & set(PROJECTIONS) else VECTORS
    if mixed := sorted(set(given) & set(VECTORS)) if start is PROJECTIONS else []:
        raise InputError(f"{', '.join(mixed)} beside x: give either q, k and v, or x with wq, wk and wv")
    if start is VECTORS and (biases := sorted(set(given) & set(OPTIONAL))):
        raise InputError(f"{', '.join(biases)} without x: a bias belongs to x with wq, wk and wv")
    additive = ADDITIVE if scoring is Scoring.ADDITIVE else {}
    if spare := sorted(set(given) & set(ADDITIVE) - set(additive)):
        raise InputError(f"{', '.join(spare)} without additive scoring: give --scoring additive as well")
    if missing := [key for key in start if key not in given]:
        raise InputError(f"no {', '.join(missing)}: give q, k and v, or x with wq, wk and wv")
    if missing := [key for key in additive if key not in given]:
        raise InputError(
            f"additive scoring has no {', '.join(missing)}: it is a · tanh(q Aq + k Ak) with "
            "additive_wq = Aq (d_q x d_a), additive_wk = Ak (d_k x d_a), additive_v = a (1 x d_a)"
        )
    there = {key: role for key, role in (start | BACK | OPTIONAL | additive).items() if key in given}
    if scoring is not Scoring.ADDITIVE:
        return there
    own = {"q": Role("Q", "query", "d_q"), "wq": Role("Wq", "d", "d_q"), "bq": Role("bq", "one", "d_q")}
    return {key: own.get(key, role) for key, role in there.items()}


def _beside_scores(given: Mapping[str, Given]) -> dict[str, Role]:
    """The roles where scores are given: V, and what brings its output back, and nothing else."""
    if spare := sorted(set(given) - {"scores", "v", "wo"}):
        raise InputError(f"{', '.join(spare)} beside scores: these take the place of Q and K")
    if "wo" in given and "v" not in given:
        raise InputError("wo beside scores without v: there is no output to bring back")
    return {key: role for key, role in (VECTORS | SCORES | BACK).items() if key in given}
