"""Reads and checks user arrays (typed, pasted, from files or memory) as matrices with named axes.

Every error is one line that says what is wrong and where. The roles of arrays, and which belong together, are
defined here too.
"""

import csv
import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnscope import incoming
from attnscope.errors import InputError, one_line
from attnscope.results.steps import Axis, Given, Matrix
from attnscope.results.stored.document import ARCHIVE, ARRAY, array_in, arrays_in
from attnscope.vocabulary import Scoring

LISTED = 100  # bytes of a cell as Python objects
_MASKING = ("scores",)  # where minus infinity is a masked key
_CAPITALS = {"Q": "q", "K": "k", "V": "v"}  # names in formulas, allowed in files
_HOW = ': type rows as "1,0; 0,1" or "[[1,0],[0,1]]", or name a .csv, .json or .npy file'
_OPENING = re.compile(r"\s*(?:\w+\s*=)?\s*(?:[\w.]+\s*\()?\s*(?=[\[(])")  # nothing, `Q =`, `np.array(`
_CLOSING = re.compile(r"(?:\s*,\s*(?:\w+\s*=\s*)?[^\[\]()]*)?[\s)]*")  # `, dtype=float32)`
_MASKED = ("-inf", "-infinity", "-∞", "float('-inf')")
_INNERMOST = re.compile(r"\[([^\[\]]*)\]")
_ROW = "\0"  # placeholder for a row


def typed(text: str, what: str, *, masks: bool = False) -> Given:
    """Parse a typed array `1,0,1; 0,1,0` (cells by commas or blanks, rows by semicolons), or a pasted one.

    A pasted array is in brackets, with at most a name or a call before them.
    """
    if (opening := _OPENING.match(text)) is not None:
        rows = _pasted(text[opening.end() :], what)
    else:
        body = text.strip(" ;\n")
        rows = [_cells(row) for row in re.split("[;\n]", body)] if body else []
    return given(rows, what, hint=_HOW, masks=masks)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split(",")] if "," in row else row.split()


def _pasted(text: str, what: str) -> list[list[str]]:
    """Cells of a pasted array as text, by row; a flat list is one row, a batch of one is unwrapped."""
    if "..." in text or "…" in text:
        raise InputError(f"{what} is cut short by '...': print it whole, or name a .npy file")
    body = text.replace("\n", " ")
    body = body if body.startswith("[") else body.replace("(", "[").replace(")", "]")
    depths = accumulate((sign == "[") - (sign == "]") for sign in body)
    if not (end := next((at for at, depth in enumerate(depths, start=1) if not depth), 0)):
        raise InputError(f"{what}: a bracket is not closed")
    rows, rest = _INNERMOST.findall(body[:end]), f"[{_INNERMOST.sub(_ROW, body[:end])}]"
    blocks, outside = _INNERMOST.findall(rest), _INNERMOST.sub("", rest)
    if {*outside} - {*"[], \t"} or {*"".join(blocks)} - {*f", \t{_ROW}"}:
        raise InputError(f"{what} has rows and single numbers side by side")
    if not _CLOSING.fullmatch(body[end:]):
        raise InputError(f"{what}: what follows the array is no part of it: '{body[end:].strip()[:30]}'")
    if len(blocks) > 1:
        raise InputError(f"{what} has {len(blocks)} blocks of rows: two axes are needed, rows and columns")
    return [_cells(row.strip().removesuffix(",")) for each in rows for row in each.split(";")]


def read_array(given: str | Path, key: str, what: str) -> Given:
    """Read one array: typed, pasted, or from a .csv, .json (nested lists) or .npy file."""
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
    """Read arrays and axis names from a .json or .npz file; `-` reads JSON from standard input."""
    name, suffix = incoming.called(path), path.suffix.lower()
    if suffix not in (".npz", ".json") and path != incoming.STANDARD_INPUT:
        raise InputError(
            f"cannot read '{path}': name a .json or .npz file, or - for JSON from standard input"
        )
    content = incoming.content(path)
    if suffix == ".npz" and not content.startswith(ARCHIVE):
        raise InputError(f"cannot read '{path}': it is no archive of arrays of NumPy")
    held: Any = arrays_in(content, name) if suffix == ".npz" else incoming.parsed(content, name)
    if not isinstance(held, dict):
        raise InputError(f"{name} holds no object with arrays by name: {', '.join(arrays)}")
    if spare := sorted(held.keys() - {*arrays, *_CAPITALS, *axes}):
        raise InputError(f"unknown in {name}: {', '.join(spare)}; known are {', '.join((*arrays, *axes))}")
    if twice := [letter for letter, key in _CAPITALS.items() if {letter, key} <= held.keys()]:
        raise InputError(f"{name} has {twice[0]} and {_CAPITALS[twice[0]]}: they are the same, give one")
    found = {
        key: given_array(held[called], f"{called} in {name}", masks=key in _MASKING)
        for called, key in ({key: key for key in arrays} | _CAPITALS).items()
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
    """Parse CSV; a first line of words holds column names, a first column of words row names.

    Lines that begin with `#` are skipped; cells are separated by commas, or by semicolons or tabs where the
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

    def word(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return bool(cell)
        return False

    header = rows.pop(0) if len(rows) > 1 and all(map(word, rows[0][1:] or rows[0])) else None
    named = bool(rows) and all(len(row) > 1 and word(row[0]) for row in rows)
    names = tuple(row[0] for row in rows) if named else None, tuple(header[named:]) if header else None
    return given([row[named:] for row in rows], what, names, masks=masks)


def given_array(array: Any, what: str, *, masks: bool = False) -> Given:
    """Convert nested lists, a NumPy array or a torch tensor to two axes; a flat one is one row.

    Raises `InputError` for more axes and for cells that are no finite numbers, such as text.
    """
    shape = tuple(getattr(array, "shape", (1,)))
    if getattr(getattr(array, "dtype", None), "kind", "f") not in "iuf":
        raise InputError(f"{what} holds no numbers")
    if len(shape) not in (1, 2):
        axes = " x ".join(map(str, shape)) or "a single number"
        raise InputError(f"{what} is {axes}: two axes are needed, rows and columns")
    incoming.check_room(LISTED * math.prod(shape), f"{what} as numbers")

    def listed(held: Any) -> Any:
        try:
            held = held.tolist() if hasattr(held, "tolist") else held
        except RuntimeError as error:  # of a tensor without memory of its own: sparse, or on the meta device
            raise InputError(f"{what} holds no rows of numbers: {one_line(error)}") from error
        return [*held] if isinstance(held, tuple) else held

    whole = listed(array)
    rows = [listed(row) for row in whole] if isinstance(whole, list) else None
    if rows and not any(isinstance(row, list) for row in rows):
        rows = [rows]
    if rows is None or not all(isinstance(row, list) for row in rows):
        raise InputError(f"{what} is no list of rows such as [[1, 0], [0, 1]]")
    return given(rows, what, masks=masks, text=False)


def given(
    rows: Sequence[Sequence[Any]],
    what: str,
    names: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None),
    **how: Any,
) -> Given:
    """Convert rows of cells to an array; `InputError` for ragged rows, bad cells, or no cells.

    `names` are those of rows and columns, `how` the keywords of `number`.
    """
    if not rows or not rows[0]:
        raise InputError(f"{what} is empty{how.get('hint', '')}")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InputError(f"{what} is ragged: row 0 has {len(rows[0])} cells, row {i} has {len(row)}")
    values = [
        [number(cell, f"{what}, row {i}, column {j}", **how) for j, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    return Given(np.array(values, np.float64), *names)


def number(cell: Any, where: str, *, hint: str = "", masks: bool = False, text: bool = True) -> float:
    """Parse a cell as a finite number, with `masks` also -inf; `text` allows strings, without `_`."""
    if isinstance(cell, list | tuple) or getattr(cell, "shape", None):
        raise InputError(f"{where} is a list: two axes are needed")
    written, value = str(cell), math.nan
    if text or not isinstance(cell, str):
        if masks and written.lower().replace("−", "-") in _MASKED:
            return -math.inf
        with suppress(TypeError, ValueError, OverflowError):
            value = math.nan if isinstance(cell, bool) or "_" in written else float(cell)
    if not math.isfinite(value):
        shown = written if len(written) <= 30 else written[:29] + "…"
        raise InputError(f"{where}: '{shown}' is no finite number{hint}")
    return value


class Role(NamedTuple):
    """Role of an array: its symbol in formulas, and the axes of its rows and columns."""

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
OF_ADDITIVE = _roles(q="Q query d_q", wq="Wq d d_q", bq="bq one d_q")  # queries have their own size
NAMES = {"query_names": "query", "key_names": "key", "token_names": "T", "dims": "d_k", "value_dims": "d_v"}

_EITHER = "give{} q and k (and v), or x with wq, wk and wv"
_NO_ADDITIVE = (
    "additive scoring has no {}: it is a · tanh(q Aq + k Ak) with "
    "additive_wq = Aq (d_q x d_a), additive_wk = Ak (d_k x d_a), additive_v = a (1 x d_a)"
)


def roles_of(given: Mapping[str, Given], scoring: Scoring) -> dict[str, Role]:
    """Roles of the given arrays; `InputError` where they are not what one example needs."""
    keys = set(given)
    start = SCORES if "scores" in keys else PROJECTIONS if keys & set(PROJECTIONS) else VECTORS
    additive = ADDITIVE if scoring is Scoring.ADDITIVE and start is not SCORES else {}
    lacking = [key for key in start if key not in keys and key != "v"]
    refusals: tuple[tuple[Collection[str], str], ...] = (
        (
            keys - {*SCORES, *BACK} if start is SCORES else "",
            "{} beside scores: these take the place of Q and K",
        ),
        (keys & {*VECTORS} if start is PROJECTIONS else "", "{} beside x: " + _EITHER.format(" either")),
        (
            keys & {*OPTIONAL} if start is VECTORS else "",
            "{} without x: a bias belongs to x with wq, wk and wv",
        ),
        (keys & {*ADDITIVE} - {*additive}, "{} without additive scoring: give --scoring additive as well"),
        (lacking, "no {}: " + _EITHER.format("")),
        (
            ["wo"] if "wo" in keys and not keys & {"v", "wv"} else "",
            "wo without v: there is no output to bring back",
        ),
        ([key for key in additive if key not in keys], _NO_ADDITIVE),
    )
    for wrong, says in refusals:
        if wrong:
            raise InputError(says.format(", ".join(sorted(wrong) if isinstance(wrong, set) else wrong)))
    there = {key: role for key, role in (start | BACK | OPTIONAL | additive).items() if key in keys}
    return {key: OF_ADDITIVE.get(key, role) for key, role in there.items()} if additive else there


MOST_PAIRS = 4_000_000


def named(
    given: Mapping[str, Given], names: Mapping[str, tuple[str, ...]], scoring: Scoring
) -> dict[str, Matrix]:
    """Matrices of all given arrays with named axes, in the order of the roles.

    `names` (keys as in `NAMES`) take precedence over names from files, these over numbers.
    Raises `InputError` for arrays that are missing, too many, or do not fit together.
    """
    roles, chosen = roles_of(given, scoring), {NAMES[key]: value for key, value in names.items()}
    shaped = {
        key: Matrix(role.symbol, given[key].values, *map(_numbered, role[1:], given[key].values.shape))
        for key, role in roles.items()
    }
    axes = dict[str, tuple[str, Axis]]()  # axis, with the first array that has it
    brought = dict[str, tuple[str, tuple[str, ...]]]()
    for key, matrix in shaped.items():
        own = (matrix.rows, given[key].rows), (matrix.columns, given[key].columns)
        for name, (axis, called) in zip(roles[key][1:], own, strict=True):
            first, before = axes.setdefault(name, (key, axis))
            told = f"{matrix.symbol} is {matrix.shape}"
            if name == "one" and len(axis.names) != 1:
                raise InputError(f"{told}: it has one row, of {matrix.columns.symbol}")
            if before.names != axis.names:
                row = key == "v" and len(matrix.values) == 1
                hint = " (one value per key is written '1; 2; 3' or [[1], [2], [3]])" if row else ""
                other = f"{shaped[first].symbol} is {shaped[first].shape}"
                raise InputError(f"{other}, {told}: {axis.plural} must agree{hint}")
            if called is None or name == "one" or name in chosen:
                continue
            first, known = brought.setdefault(name, (key, called))
            if known != called:
                both = f"{first} has {', '.join(known)}, {key} has {', '.join(called)}"
                raise InputError(f"two names for the same {axis.plural}: {both}")
    sizes = {name: len(axis.names) for name, (_, axis) in axes.items()}
    queries, keys = (sizes.get(axis, sizes.get("T", 0)) for axis in ("query", "key"))
    if queries * keys > MOST_PAIRS:
        raise InputError(f"{queries} queries x {keys} keys are too many to show: at most {MOST_PAIRS} pairs")
    # the proof uses the identity in place of V
    incoming.check_room(16 * keys**2, f"attention to {keys} keys")
    if spare := [key for key, axis in NAMES.items() if axis in chosen and axis not in axes]:
        raise InputError(f"{', '.join(spare)}: these arrays have no such axis")
    every = {name: axis for name, (_, axis) in axes.items()}
    for name, called in ({name: called for name, (_, called) in brought.items()} | chosen).items():
        axis, count = every[name], sizes[name]
        if len(called) != count:
            counted = (
                f"{axis.symbol} = {count}"
                if axis.symbol
                else f"{count} {axis.word if count == 1 else axis.plural}"
            )
            raise InputError(f"{len(called)} names for {counted}")
        every[name] = replace(axis, names=called or axis.names)
    return {
        key: replace(matrix, rows=every[roles[key].rows], columns=every[roles[key].columns])
        for key, matrix in shaped.items()
    }


def _numbered(name: str, count: int) -> Axis:
    axis = AXES[name]
    prefix = "" if axis.word == "dimension" else axis.word[:1]
    return replace(axis, names=tuple(f"{prefix}{i}" if axis.word else "" for i in range(count)))
