"""The options that give `attnscope sdpa` its arrays and the names of their axes."""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope import incoming
from attnscope.cli.arrays.files import SINGLE, read_array, read_arrays, typed
from attnscope.cli.panels import Brief
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.results import HeadAttention
    from attnscope.results.worked import Given


_SEEN = 4096  # bytes of a JSON file in which its schema stands


ROWS, NAMES = "ROWS|FILE", "A,B,C"
ARRAYS = ("q", "k", "v", "scores", "x", "wq", "wk", "wv", "wo", "additive_wq", "additive_wk", "additive_v")
MASKING = ("scores",)  # where minus infinity is a masked key
BIASES = ("bq", "bk", "bv")
AXES = {
    "queries": "query_names",
    "keys": "key_names",
    "tokens": "token_names",
    "dims": "dims",
    "value_dims": "value_dims",
}

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="Arrays by name in a .json or .npz file, '-' for JSON from standard input: q, k, v, or scores, "
        "or x, wq, wk, wv (and wo, bq, bk, bv), with query_names, key_names or token_names, dims, "
        "value_dims. Or one head as heads -o head.npz writes it.",
    ),
    Brief("arrays by name, .json or .npz; or one head's file"),
]
Q = Annotated[
    str | None,
    typer.Option(
        "--q",
        metavar=ROWS,
        help='Queries, one a row. Every array is typed as "1,0; 0,1", pasted as Python, NumPy or torch print '
        'it ("[[1, 0], [0, 1]]"), or is a .csv file (words in a first line and a first column are names), a '
        ".json or a .npy file.",
    ),
    Brief('queries, one a row: "1,0; 0,1", or a file', metavar="ROWS"),
]
K = Annotated[
    str | None,
    typer.Option("--k", metavar=ROWS, help="Keys, one a row, as long as a query."),
    Brief("keys, one a row", metavar="ROWS"),
]
V = Annotated[
    str | None,
    typer.Option("--v", metavar=ROWS, help="Values, one row for each key."),
    Brief("values, one row for each key", metavar="ROWS"),
]
Scores = Annotated[
    str | None,
    typer.Option(
        "--scores",
        metavar=ROWS,
        help="Scores, one row for each query, in place of Q and K (and of V, where only weights are wanted); "
        "-inf masks a key.",
    ),
]
X = Annotated[
    str | None,
    typer.Option("--x", metavar=ROWS, help="Tokens (T x d), in place of Q, K and V."),
    Brief("tokens, with --wq, --wk, --wv in place of these", metavar="ROWS"),
]
Wq = Annotated[str | None, typer.Option("--wq", metavar=ROWS, help="X to queries: d x d_k, Q = X Wq.")]
Wk = Annotated[str | None, typer.Option("--wk", metavar=ROWS, help="X to keys: d x d_k.")]
Wv = Annotated[str | None, typer.Option("--wv", metavar=ROWS, help="X to values: d x d_v.")]
Wo = Annotated[str | None, typer.Option("--wo", metavar=ROWS, help="Output back to the width of X: d_v x d.")]
AdditiveWq = Annotated[
    str | None, typer.Option("--additive-wq", metavar=ROWS, help="Aq of additive scoring: d_q x d_a.")
]
AdditiveWk = Annotated[
    str | None, typer.Option("--additive-wk", metavar=ROWS, help="Ak of additive scoring: d_k x d_a.")
]
AdditiveV = Annotated[
    str | None, typer.Option("--additive-v", metavar=ROWS, help="a of additive scoring: one row of d_a.")
]
Queries = Annotated[str | None, typer.Option("--queries", metavar=NAMES, help="Names of the queries.")]
Keys = Annotated[str | None, typer.Option("--keys", metavar=NAMES, help="Names of the keys.")]
TokenNames = Annotated[str | None, typer.Option("--tokens", metavar=NAMES, help="Names of the rows of X.")]
Dims = Annotated[str | None, typer.Option("--dims", metavar=NAMES, help="Names of the columns of Q and K.")]
ValueDims = Annotated[
    str | None, typer.Option("--value-dims", metavar=NAMES, help="Names of the columns of V.")
]


@dataclass(frozen=True)
class Arrays:
    """What the user gives: a file of arrays, or arrays one by one, typed or each in a file of its own."""

    PANEL = "The arrays"
    BEYOND = "matrices, names"

    file: File = None
    q: Q = None
    k: K = None
    v: V = None
    scores: Scores = None
    x: X = None
    wq: Wq = None
    wk: Wk = None
    wv: Wv = None
    wo: Wo = None
    additive_wq: AdditiveWq = None
    additive_wk: AdditiveWk = None
    additive_v: AdditiveV = None
    queries: Queries = None
    keys: Keys = None
    tokens: TokenNames = None
    dims: Dims = None
    value_dims: ValueDims = None

    @property
    def any(self) -> bool:
        """Whether anything was given at all."""
        return self.file is not None or bool(self._options())

    def _options(self) -> dict[str, str]:
        return {name: text for name in (*ARRAYS, *AXES) if (text := getattr(self, name)) is not None}

    def stored_head(self) -> "HeadAttention | None":
        """The head in a file that attnscope wrote; None where the file is no such, or there is none."""
        if self.file is None or not is_result(self.file):
            return None
        if self._options():
            raise InputError(f"'{self.file}' is a head with arrays of its own: leave the others out")
        return read_head(self.file)

    def read(self) -> "tuple[dict[str, Given], dict[str, tuple[str, ...]]]":
        """The arrays, and the names of axes, by the keys of files; `InputError` for what cannot be read.

        Names among the options replace those of the file; an array has to be given once.
        """
        options = self._options()
        arrays: dict[str, Given] = {}
        names: dict[str, tuple[str, ...]] = {}
        if self.file is not None:
            arrays, names = read_arrays(self.file, (*ARRAYS, *BIASES), AXES.values(), MASKING)
        for key in ARRAYS:
            if key not in options:
                continue
            if key in arrays:
                raise InputError(f"{key} is given twice, in {self.file} and by {_flag(key)}")
            arrays[key] = _one(options[key], _flag(key), masks=key in MASKING)
        for name, key in AXES.items():
            if name in options:
                names[key] = _split(options[name], _flag(name))
        return arrays, names


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _one(text: str, flag: str, *, masks: bool) -> "Given":
    named = text.lower().endswith(SINGLE)
    return read_array(Path(text), flag, masks=masks) if named else typed(text, flag, masks=masks)


def _split(text: str, flag: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InputError(f"{flag} '{text}' has an empty name: separate names by commas")
    return names


def is_result(path: Path) -> bool:
    """Whether attnscope wrote the file; False also for one that cannot be read."""
    try:
        content = incoming.content(path)
        if content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return "meta.npy" in archive.namelist()
    except (InputError, ValueError, zipfile.BadZipFile):
        return False
    start = content[:_SEEN]
    return b'"attnscope.' in start and b'"schema"' in start


def read_head(path: Path) -> "HeadAttention":
    """The head in `path`; `InputError` for another result, and for weights that a model only returned."""
    from attnscope.results import HeadAttention, HeadWeights, load

    result = load(path)
    head = result if isinstance(result, HeadWeights) else getattr(result, "head", None)
    if isinstance(head, HeadAttention):
        return head
    what = type(result).__name__
    if isinstance(head, HeadWeights):
        raise InputError(f"'{path}' has only weights as the model returned them: no q, k and v to work with")
    raise InputError(f"'{path}' is a {what} and not one head: attnscope show {path} shows it")
