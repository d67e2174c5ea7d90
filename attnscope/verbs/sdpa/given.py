"""Arrays as a user gives them, typed, pasted, in files or in memory, as matrices with named axes that fit.

Every mistake is one line that says what and where. Which arrays there may be, what each is for and which
belong together stands here too.
"""

import csv
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnscope import incoming
from attnscope.errors import InputError, one_line
from attnscope.results.steps import Axis, Given, Matrix
from attnscope.results.stored.document import ARCHIVE, ARRAY, array_in, arrays_in
from attnscope.vocabulary import Scoring

LISTED = 100  # bytes of a cell among Python's objects
_MASKING = ("scores",)  # where minus infinity is a masked key
_CAPITALS = {"Q": "q", "K": "k", "V": "v"}  # how formulas call them, as a file may
_HOW = ': type rows as "1,0; 0,1" or "[[1,0],[0,1]]", or name a .csv, .json or .npy file'
_OPENING = re.compile(r"\s*(?:\w+\s*=)?\s*(?:[\w.]+\s*\()?\s*(?=[\[(])")  # nothing, `Q =`, `np.array(`
_CLOSING = re.compile(r"(?:\s*,\s*(?:\w+\s*=\s*)?[^\[\]()]*)?[\s)]*")  # `, dtype=float32)`
_PARTS = re.compile(r"[\[\]]|[^\[\]]+")


def typed(text: str, what: str, *, masks: bool = False) -> Given:
    """`1,0,1; 0,1,0`: rows between semicolons, cells between commas or blanks; or an array that is pasted.

    That is in brackets, with no more than a name or a call before them.
    """
    if (opening := _OPENING.match(text)) is not None:
        return given(_pasted(text, opening.end(), what), what, hint=_HOW, masks=masks)
    if not text.strip(" ;\n"):
        raise InputError(f"{what} is empty{_HOW}")
    rows = [row.strip() for row in re.split("[;\n]", text.strip(" ;\n"))]
    cells = [[cell.strip() for cell in row.split(",")] if "," in row else row.split() for row in rows]
    return given(cells, what, hint=_HOW, masks=masks)


def _pasted(text: str, start: int, what: str) -> list[list[str]]:
    """The cells of every row, not yet numbers; a flat list is one row, a batch of one the rows in it."""
    if "..." in text or "…" in text:
        raise InputError(f"{what} is cut short by '...': print it whole, or name a .npy file")
    body = text[start:].replace("\n", " ")
    body = body if body.startswith("[") else body.replace("(", "[").replace(")", "]")
    depth, blocks, end, before = 0, 0, 0, ""  # blocks: brackets that hold rows
    rows, levels = list[list[str]](), set[int]()  # how deep the numbers stand
    for part in (part for part in _PARTS.finditer(body) if part[0].strip(" ,\t")):
        if part[0] == "[":
            depth += 1
        elif part[0] == "]":
            rows += [[]] if before == "[" else []
            blocks += before == "]" and depth == max(levels, default=0) - 1
            depth -= 1
        else:
            levels.add(depth)
            rows += map(_cells, part[0].split(";"))
        before, end = part[0], part.end()
        if depth == 0:
            break
    if depth:
        raise InputError(f"{what}: a bracket is not closed")
    if len(levels) > 1:
        raise InputError(f"{what} has rows and single numbers side by side")
    if not _CLOSING.fullmatch(body[end:]):
        raise InputError(f"{what}: what follows the array is no part of it: '{body[end:].strip()[:30]}'")
    if blocks > 1:
        raise InputError(f"{what} has {blocks} blocks of rows: two axes are needed, rows and columns")
    return rows


def _cells(row: str) -> list[str]:
    cells = [cell.strip() for cell in row.split(",")] if "," in row else row.split()
    return cells[:-1] if "," in row and not cells[-1] else cells


def read_array(given: str | Path, key: str, what: str) -> Given:
    """One array, typed, pasted, or from a .csv, .json (nested lists) or .npy file."""
    masks = key in _MASKING
    if not isinstance(given, Path):
        return typed(given, what, masks=masks)
    content, name, suffix = incoming.content(given), f"{what} in {given}", given.suffix.lower()
    if suffix == ".csv":
        return _from_csv(content, name, masks)
    if suffix == ".json":
        return given_array(incoming.parsed(content, str(given)), name, masks=masks)
    if not content.startswith(ARRAY):
        raise InputError(f"cannot read '{given}': it holds no array of NumPy")
    return given_array(array_in(content, str(given)), name, masks=masks)


def read_arrays(
    path: Path, arrays: Collection[str], axes: Collection[str]
) -> tuple[dict[str, Given], dict[str, tuple[str, ...]]]:
    """The arrays and the names of their axes in a .json or .npz file; `-` reads JSON from standard input."""
    name = incoming.called(path)
    if path.suffix.lower() == ".npz":
        content = incoming.content(path)
        if not content.startswith(ARCHIVE):
            raise InputError(f"cannot read '{path}': it is no archive of arrays of NumPy")
        held: Any = arrays_in(content, str(path))
    elif path == incoming.STANDARD_INPUT or path.suffix.lower() == ".json":
        held = incoming.parsed(incoming.content(path), name)
    else:
        raise InputError(
            f"cannot read '{path}': name a .json or .npz file, or - for JSON from standard input"
        )
    if not isinstance(held, dict):
        raise InputError(f"{name} holds no object with arrays by name: {', '.join(arrays)}")
    if spare := sorted(held.keys() - {*arrays, *_CAPITALS, *axes}):
        raise InputError(f"unknown in {name}: {', '.join(spare)}; known are {', '.join((*arrays, *axes))}")
    if twice := [letter for letter, key in _CAPITALS.items() if {letter, key} <= held.keys()]:
        raise InputError(f"{name} has {twice[0]} and {_CAPITALS[twice[0]]}: they are the same, give one")
    keys = {key: key for key in arrays} | _CAPITALS
    found = {
        key: given_array(held[called], f"{called} in {name}", masks=key in _MASKING)
        for called, key in keys.items()
        if called in held
    }
    return found, {key: _names(held[key], f"{key} in {name}") for key in axes if key in held}


def _names(value: Any, what: str) -> tuple[str, ...]:
    listed = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{what} is no list of names")
    for name in listed:
        incoming.check_name(name, what)
    return tuple(listed)


def _from_csv(content: bytes, what: str, masks: bool) -> Given:
    """Lines of cells. Words in all of the first line are column names, in all of a first column row names.

    Lines that begin with `#` are left out; cells are between commas, or semicolons or tabs where the
    first line has no comma.
    """
    cells = sum(content.count(sign) for sign in (b",", b";", b"\t", b"\n"))
    incoming.check_room(LISTED * cells, f"{what} as numbers")
    text = incoming.text(content.removeprefix(incoming.BOM), what)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = next((sign for sign in ",;\t" if lines and sign in lines[0]), ",")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error as error:
        raise InputError(f"{what} is no CSV: {one_line(error)}") from error
    header = rows.pop(0) if len(rows) > 1 and all(_is_word(cell) for cell in rows[0][1:] or rows[0]) else None
    named = bool(rows) and all(len(row) > 1 and _is_word(row[0]) for row in rows)
    names = tuple(row[0] for row in rows) if named else None, tuple(header[named:]) if header else None
    return given([row[named:] for row in rows], what, names, masks=masks)


def _is_word(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return bool(cell)
    return False


def given_array(array: Any, what: str, *, masks: bool = False) -> Given:
    """Nested lists, or an array of NumPy or torch, as an array of two axes; a flat one is one row.

    Raises `InputError` for what has other axes and for cells that are no finite numbers, text among them.
    """
    shape = tuple(getattr(array, "shape", (1,)))
    if getattr(getattr(array, "dtype", None), "kind", "f") not in "iuf":
        raise InputError(f"{what} holds no numbers")
    if len(shape) not in (1, 2):
        axes = " x ".join(map(str, shape)) or "a single number"
        raise InputError(f"{what} is {axes}: two axes are needed, rows and columns")
    incoming.check_room(LISTED * math.prod(shape), f"{what} as numbers")
    rows = _listed(array, what)
    rows = [_listed(row, what) for row in rows] if isinstance(rows, list) else None
    if rows and not any(isinstance(row, list) for row in rows):
        rows = [rows]
    if rows is None or not all(isinstance(row, list) for row in rows):
        raise InputError(f"{what} is no list of rows such as [[1, 0], [0, 1]]")
    for where, cell in _placed(rows, what):
        if isinstance(cell, list | tuple) or getattr(cell, "shape", None):
            raise InputError(f"{where} is a list: two axes are needed")
        if isinstance(cell, str):
            raise _no_number(cell, where)
    return given(rows, what, masks=masks)


def _listed(array: Any, what: str) -> Any:
    try:
        listed = array.tolist() if hasattr(array, "tolist") else array
    except RuntimeError as error:  # of a tensor without memory of its own: sparse, or on the meta device
        raise InputError(f"{what} holds no rows of numbers: {one_line(error)}") from error
    return [*listed] if isinstance(listed, tuple) else listed


def _placed(rows: Sequence[Sequence[Any]], what: str) -> Iterator[tuple[str, Any]]:
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            yield f"{what}, row {i}, column {j}", cell


def given(
    rows: Sequence[Sequence[Any]],
    what: str,
    names: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None),
    *,
    hint: str = "",
    masks: bool = False,
) -> Given:
    """Rows of cells as an array; `InputError` for cells that are no finite numbers, ragged rows, nothing.

    With `masks` a cell may be minus infinity: a key that is masked. `names` are those of rows and columns.
    """
    if not rows or not rows[0]:
        raise InputError(f"{what} is empty{hint}")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InputError(f"{what} is ragged: row 0 has {len(rows[0])} cells, row {i} has {len(row)}")
    values = [
        -math.inf if masks and _is_masked(cell) else number(cell, where, hint)
        for where, cell in _placed(rows, what)
    ]
    return Given(np.array(values, np.float64).reshape(len(rows), -1), *names)


def _is_masked(cell: Any) -> bool:
    return str(cell).lower().replace("−", "-") in ("-inf", "-infinity", "-∞", "float('-inf')")


def number(cell: Any, where: str, hint: str = "") -> float:
    """A finite number; text as Python reads it, but without underscores."""
    try:
        value = math.nan if isinstance(cell, bool) or "_" in str(cell) else float(cell)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise _no_number(cell, where, hint)
    return value


def _no_number(cell: Any, where: str, hint: str = "") -> InputError:
    shown = str(cell) if len(str(cell)) <= 30 else str(cell)[:29] + "…"
    return InputError(f"{where}: '{shown}' is no finite number{hint}")


class Role(NamedTuple):
    """What an array is for: its symbol in formulas, and which axes its rows and columns run along."""

    symbol: str
    rows: str
    columns: str


def _roles(**lines: str) -> dict[str, Role]:
    return {key: Role(*line.split()) for key, line in lines.items()}


AXES = {
    "query": Axis("query", ()),
    "key": Axis("key", ()),
    "one": Axis("", ()),
    "T": Axis("token", (), "T"),
    **{symbol: Axis("dimension", (), symbol) for symbol in ("d", "d_q", "d_k", "d_v", "d_a")},
}
VECTORS = _roles(q="Q query d_k", k="K key d_k", v="V key d_v")
SCORES = _roles(v="V key d_v", scores="scores query key")
PROJECTIONS = _roles(x="X T d", wq="Wq d d_k", wk="Wk d d_k", wv="Wv d d_v")
OPTIONAL = _roles(bq="bq one d_k", bk="bk one d_k", bv="bv one d_v")
BACK = _roles(wo="Wo d_v d")
ADDITIVE = _roles(additive_wq="Aq d_q d_a", additive_wk="Ak d_k d_a", additive_v="a one d_a")
OF_ADDITIVE = _roles(q="Q query d_q", wq="Wq d d_q", bq="bq one d_q")  # a query has a size of its own
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
    return {key: OF_ADDITIVE.get(key, role) for key, role in there.items()} if additive else there


MOST_PAIRS = 4_000_000


def named(
    given: Mapping[str, Given], names: Mapping[str, tuple[str, ...]], scoring: Scoring
) -> dict[str, Matrix]:
    """Every array with its axes named, in the order of the roles.

    `names` (keys as in `NAMES`) come before the names that an array brought with it, these before numbers.
    Raises `InputError` for arrays that are missing, too many, or do not fit together.
    """
    roles = roles_of(given, scoring)
    shaped = {
        key: Matrix(role.symbol, given[key].values, *map(_numbered, role[1:], given[key].values.shape))
        for key, role in roles.items()
    }
    axes = dict[str, tuple[str, Axis]]()  # each with the array that is the first to have it
    for key, matrix in shaped.items():
        for name, axis in zip(roles[key][1:], (matrix.rows, matrix.columns), strict=True):
            first, before = axes.setdefault(name, (key, axis))
            told = f"{matrix.symbol} is {matrix.shape}"
            if name == "one" and len(axis.names) != 1:
                raise InputError(f"{told}: it has one row, of {matrix.columns.symbol}")
            if before.names != axis.names:
                row = key == "v" and len(matrix.values) == 1
                hint = " (one value per key is written '1; 2; 3' or [[1], [2], [3]])" if row else ""
                other = f"{shaped[first].symbol} is {shaped[first].shape}"
                raise InputError(f"{other}, {told}: {axis.plural} must agree{hint}")
    sizes = {name: len(axis.names) for name, (_, axis) in axes.items()}
    queries, keys = (sizes.get(axis, sizes.get("T", 0)) for axis in ("query", "key"))
    if queries * keys > MOST_PAIRS:
        raise InputError(f"{queries} queries x {keys} keys are too many to show: at most {MOST_PAIRS} pairs")
    # it is proved with the identity in place of V
    incoming.check_room(16 * keys**2, f"attention to {keys} keys")
    chosen = {NAMES[key]: value for key, value in names.items()}
    if spare := [key for key, axis in NAMES.items() if axis in chosen and axis not in axes]:
        raise InputError(f"{', '.join(spare)}: these arrays have no such axis")
    all_names = _brought(given, roles, without=set(chosen)) | chosen
    every = {name: _named(axis, all_names.get(name)) for name, (_, axis) in axes.items()}
    return {
        key: replace(matrix, rows=every[roles[key].rows], columns=every[roles[key].columns])
        for key, matrix in shaped.items()
    }


def _numbered(name: str, count: int) -> Axis:
    axis = AXES[name]
    prefix = "" if axis.word == "dimension" else axis.word[:1]
    return replace(axis, names=tuple(f"{prefix}{i}" if axis.word else "" for i in range(count)))


def _named(axis: Axis, names: tuple[str, ...] | None) -> Axis:
    if names is not None and len(names) != (count := len(axis.names)):
        word = axis.word if count == 1 else axis.plural
        counted = f"{axis.symbol} = {count}" if axis.symbol else f"{count} {word}"
        raise InputError(f"{len(names)} names for {counted}")
    return replace(axis, names=names or axis.names)


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
