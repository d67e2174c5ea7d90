"""The options that give `attnscope sdpa` its arrays and the names of their axes."""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.session.option import argument, option, slots

if TYPE_CHECKING:
    from attnscope.results import HeadAttention
    from attnscope.results.worked import Given


_SEEN = 4096  # bytes of a JSON file in which its schema stands


ROWS, NAMES = "ROWS|FILE", "A,B,C"
ARRAYS = ("q", "k", "v", "scores", "x", "wq", "wk", "wv", "wo", "additive_wq", "additive_wk", "additive_v")
BIASES = ("bq", "bk", "bv")
AXES = ("query_names", "key_names", "token_names", "dims", "value_dims")

FILE = argument(
    "FILE",
    help="Arrays by name in a .json or .npz file, '-' for JSON from standard input: q, k (and v), or Q, K "
    "(and V), or scores (and v), or x, wq, wk, wv (and wo, bq, bk, bv), with query_names, key_names or "
    "token_names, dims, value_dims. Or one head as heads -o head.npz writes it.",
    brief="arrays by name, .json or .npz; or one head's file",
)  # fmt: skip
Q = option(
    "--q", metavar=ROWS, brief_metavar="ROWS",
    help='Queries, one a row. Every array is typed as "1,0; 0,1", pasted as Python, NumPy or torch print it '
    '("[[1, 0], [0, 1]]"), or is a .csv file (words in a first line and a first column are names), a .json '
    "or a .npy file.",
    brief='queries, one a row: "1,0; 0,1", or a file',
)  # fmt: skip
K = option(
    "--k", metavar=ROWS, brief_metavar="ROWS",
    help="Keys, one a row, as long as a query.",
    brief="keys, one a row",
)  # fmt: skip
V = option(
    "--v", metavar=ROWS, brief_metavar="ROWS",
    help="Values, one row for each key; left out where only weights are wanted.",
    brief="values, one row for each key",
)  # fmt: skip
SCORES = option(
    "--scores", metavar=ROWS, help="Scores, one row for each query, in place of Q and K; -inf masks a key."
)
X = option(
    "--x", metavar=ROWS, brief_metavar="ROWS",
    help="Tokens (T x d), in place of Q, K and V.",
    brief="tokens, with --wq, --wk, --wv in place of these",
)  # fmt: skip
WO = option("--wo", metavar=ROWS, help="Output back to the width of X: d_v x d.")
ADDITIVE_WQ = option("--additive-wq", metavar=ROWS, help="Aq of additive scoring: d_q x d_a.")
ADDITIVE_WK = option("--additive-wk", metavar=ROWS, help="Ak of additive scoring: d_k x d_a.")
ADDITIVE_V = option("--additive-v", metavar=ROWS, help="a of additive scoring: one row of d_a.")
DIMS = option("--dims", metavar=NAMES, help="Names of the columns of Q and K.")
VALUE_DIMS = option("--value-dims", metavar=NAMES, help="Names of the columns of V.")


@dataclass(frozen=True)
class Arrays:
    """What the user gives: a file of arrays, or arrays one by one, typed or each in a file of its own."""

    PANEL = "The arrays"
    BEYOND = "matrices, names"

    file: Annotated[Path | None, FILE] = None
    q: Annotated[str | None, Q] = None
    k: Annotated[str | None, K] = None
    v: Annotated[str | None, V] = None
    scores: Annotated[str | None, SCORES] = None
    x: Annotated[str | None, X] = None
    wq: Annotated[str | None, option("--wq", metavar=ROWS, help="X to queries: d x d_k, Q = X Wq.")] = None
    wk: Annotated[str | None, option("--wk", metavar=ROWS, help="X to keys: d x d_k.")] = None
    wv: Annotated[str | None, option("--wv", metavar=ROWS, help="X to values: d x d_v.")] = None
    wo: Annotated[str | None, WO] = None
    additive_wq: Annotated[str | None, ADDITIVE_WQ] = None
    additive_wk: Annotated[str | None, ADDITIVE_WK] = None
    additive_v: Annotated[str | None, ADDITIVE_V] = None
    query_names: Annotated[str | None, option("--queries", metavar=NAMES, help="Names of the queries.")] = (
        None
    )
    key_names: Annotated[str | None, option("--keys", metavar=NAMES, help="Names of the keys.")] = None
    token_names: Annotated[str | None, option("--tokens", metavar=NAMES, help="Names of the rows of X.")] = (
        None
    )
    dims: Annotated[str | None, DIMS] = None
    value_dims: Annotated[str | None, VALUE_DIMS] = None

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
        from attnscope.cli.arrays import MASKING, read_array, read_arrays

        options = self._options()
        arrays: dict[str, Given] = {}
        names: dict[str, tuple[str, ...]] = {}
        if self.file is not None:
            arrays, names = read_arrays(self.file, (*ARRAYS, *BIASES), AXES)
        for key in (key for key in ARRAYS if key in options):
            if key in arrays:
                raise InputError(f"{key} is given twice, in {self.file} and by {_flag(key)}")
            arrays[key] = read_array(options[key], _flag(key), masks=key in MASKING)
        for key in (key for key in AXES if key in options):
            names[key] = _split(options[key], _flag(key))
        return arrays, names


def _flag(name: str) -> str:
    return slots(Arrays)[name].option.name


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
