"""From arrays as they were given to arrays with named axes that fit together, or a line that says why not.

Which arrays there may be, what each is for and which belong together stands here too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from attnscope.errors import InputError
from attnscope.incoming import check_room
from attnscope.results.worked import Axis, Given, Matrix
from attnscope.vocabulary import Scoring


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
SCORES = {"v": VECTORS["v"], "scores": Role("scores", "query", "key")}
NAMES = {"query_names": "query", "key_names": "key", "token_names": "T", "dims": "d_k", "value_dims": "d_v"}


def roles_of(given: Mapping[str, Given], scoring: Scoring) -> dict[str, Role]:
    """The roles of the arrays that are given, once these are known to be what one example needs."""
    keys = set(given)
    start = SCORES if "scores" in keys else PROJECTIONS if keys & set(PROJECTIONS) else VECTORS
    if start is SCORES and (spare := sorted(keys - {*SCORES, *BACK})):
        raise InputError(f"{', '.join(spare)} beside scores: these take the place of Q and K")
    if start is PROJECTIONS and (mixed := sorted(keys & set(VECTORS))):
        raise InputError(f"{', '.join(mixed)} beside x: give either q and k (and v), or x with wq, wk and wv")
    if start is VECTORS and (biases := sorted(keys & set(OPTIONAL))):
        raise InputError(f"{', '.join(biases)} without x: a bias belongs to x with wq, wk and wv")
    additive = ADDITIVE if scoring is Scoring.ADDITIVE and start is not SCORES else {}
    if spare := sorted(keys & set(ADDITIVE) - set(additive)):
        raise InputError(f"{', '.join(spare)} without additive scoring: give --scoring additive as well")
    if missing := [key for key in start if key not in keys and key != "v"]:
        raise InputError(f"no {', '.join(missing)}: give q and k (and v), or x with wq, wk and wv")
    if "wo" in keys and not keys & {"v", "wv"}:
        raise InputError("wo without v: there is no output to bring back")
    if missing := [key for key in additive if key not in keys]:
        raise InputError(
            f"additive scoring has no {', '.join(missing)}: it is a · tanh(q Aq + k Ak) with "
            "additive_wq = Aq (d_q x d_a), additive_wk = Ak (d_k x d_a), additive_v = a (1 x d_a)"
        )
    there = {key: role for key, role in (start | BACK | OPTIONAL | additive).items() if key in keys}
    if not additive:
        return there
    own = {"q": Role("Q", "query", "d_q"), "wq": Role("Wq", "d", "d_q"), "bq": Role("bq", "one", "d_q")}
    return {key: own.get(key, role) for key, role in there.items()}


MOST_PAIRS = 4_000_000


def named(
    given: Mapping[str, Given], names: Mapping[str, tuple[str, ...]], scoring: Scoring
) -> dict[str, Matrix]:
    """Every array with its axes named, in the order of the roles.

    `names` (keys as in `NAMES`) come before the names that an array brought with it, these before numbers.
    Raises `InputError` for arrays that are missing, too many, or do not fit together.
    """
    roles = roles_of(given, scoring)
    lengths = _lengths(given, roles)
    chosen = {NAMES[key]: value for key, value in names.items()}
    if spare := [key for key, axis in NAMES.items() if axis in chosen and axis not in lengths]:
        raise InputError(f"{', '.join(spare)}: these arrays have no such axis")
    all_names = _brought(given, roles, without=set(chosen)) | chosen
    axes = {axis: _axis(axis, length, all_names.get(axis)) for axis, length in lengths.items()}
    return {
        key: Matrix(role.symbol, given[key].values, axes[role.rows], axes[role.columns])
        for key, role in roles.items()
    }


def _lengths(given: Mapping[str, Given], roles: Mapping[str, Role]) -> dict[str, int]:
    firsts: dict[str, tuple[str, int]] = {}
    for key, role in roles.items():
        for axis, length in zip((role.rows, role.columns), given[key].values.shape, strict=True):
            first, before = firsts.setdefault(axis, (key, length))
            if axis == "one" and length != 1:
                raise InputError(
                    f"{_shaped(key, given, roles)}: it has one row, of {AXES[role.columns].symbol}"
                )
            if before != length:
                shapes = f"{_shaped(first, given, roles)}, {_shaped(key, given, roles)}"
                raise InputError(f"{shapes}: {AXES[axis].plural} must agree{_hint(key, given)}")
    lengths = {axis: length for axis, (_, length) in firsts.items()}
    queries, keys = (lengths.get(axis, lengths.get("T", 0)) for axis in ("query", "key"))
    if queries * keys > MOST_PAIRS:
        raise InputError(f"{queries} queries x {keys} keys are too many to show: at most {MOST_PAIRS} pairs")
    check_room(16 * keys**2, f"attention to {keys} keys")  # it is proved with the identity in place of V
    return lengths


def _shaped(key: str, given: Mapping[str, Given], roles: Mapping[str, Role]) -> str:
    """`Q is 1 x d_k=2`."""
    sides = zip((roles[key].rows, roles[key].columns), given[key].values.shape, strict=True)
    sizes = (f"{AXES[axis].symbol}={n}" if AXES[axis].symbol else str(n) for axis, n in sides)
    return f"{roles[key].symbol} is {' x '.join(sizes)}"


def _hint(key: str, given: Mapping[str, Given]) -> str:
    return (
        " (one value per key is written '1; 2; 3' or [[1], [2], [3]])"
        if key == "v" and len(given[key].values) == 1
        else ""
    )


def _axis(axis: str, length: int, names: tuple[str, ...] | None) -> Axis:
    if names is not None and len(names) != length:
        raise InputError(f"{len(names)} names for {_counted(axis, length)}")
    prefix = {"query": "q", "key": "k", "T": "t"}.get(axis, "")
    numbered = ("",) if axis == "one" else tuple(f"{prefix}{i}" for i in range(length))
    return replace(AXES[axis], names=names or numbered)


def _counted(axis: str, length: int) -> str:
    if AXES[axis].symbol:
        return f"{AXES[axis].symbol} = {length}"
    return f"{length} {AXES[axis].word if length == 1 else AXES[axis].plural}"


def _brought(
    given: Mapping[str, Given], roles: Mapping[str, Role], without: set[str]
) -> dict[str, tuple[str, ...]]:
    firsts: dict[str, tuple[str, tuple[str, ...]]] = {}
    for key, role in roles.items():
        for axis, names in ((role.rows, given[key].rows), (role.columns, given[key].columns)):
            if names is None or axis == "one" or axis in without:
                continue
            first, before = firsts.setdefault(axis, (key, names))
            if before != names:
                told = f"{first} has {', '.join(before)}, {key} has {', '.join(names)}"
                raise InputError(f"two names for the same {AXES[axis].plural}: {told}")
    return {axis: names for axis, (_, names) in firsts.items()}


def squares(matrices: Mapping[str, Matrix]) -> tuple[str, ...]:
    """A warning for every square array: nothing shows whether it was meant to be the other way round."""
    return tuple(
        f"{each.symbol} is square and cannot be told from its transpose: read as {each.reading}"
        for each in matrices.values()
        if each.values.shape[0] == each.values.shape[1] > 1
    )
