"""Work attention out on numbers you give, step by step.

Scores, weights and output, each with its shape, of arrays that are typed, in files, or built in. With
nothing given it is the smallest example, --example fruit.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attnscope.errors import InputError
from attnscope.session.option import argument, option, slots
from attnscope.session.question import Alone, Answer, OfModel
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Wanted
from attnscope.vocabulary import THEATRE, Scoring

if TYPE_CHECKING:
    from attnscope.session.listener import Listener
    from attnscope.session.opening import Opening
    from attnscope.verbs.sdpa.result import ScaleStudy, Worked  # noqa: F401

ARRAYS = ("q", "k", "v", "scores", "x", "wq", "wk", "wv", "wo", "additive_wq", "additive_wk", "additive_v")
AXES = ("query_names", "key_names", "token_names", "dims", "value_dims")
FILES = (".csv", ".json", ".npy")  # of a single array
_GIVEN, _HOW, _THEATRE = "The arrays", "How they are worked out", "The theatre"

_rows = partial(option, metavar="ROWS|FILE", brief_metavar="ROWS", panel=_GIVEN)
_names = partial(option, metavar="A,B,C", panel=_GIVEN)
Rows = str | Path | None  # held as a path where it is one

FILE = argument(
    "FILE",
    help="Arrays by name in a .json or .npz file, '-' for JSON from standard input: q, k (and v), or Q, K "
    "(and V), or scores (and v), or x, wq, wk, wv (and wo, bq, bk, bv), with query_names, key_names or "
    "token_names, dims, value_dims. Or one head as heads -o head.npz writes it.",
    brief="arrays by name, .json or .npz; or one head's file",
)  # fmt: skip
Q = _rows(
    "--q", brief='queries, one a row: "1,0; 0,1", or a file',
    help='Queries, one a row. Every array is typed as "1,0; 0,1", pasted as Python, NumPy or torch print it '
    '("[[1, 0], [0, 1]]"), or is a .csv file (words in a first line and a first column are names), a .json '
    "or a .npy file.",
)  # fmt: skip
K = _rows("--k", help="Keys, one a row, as long as a query.", brief="keys, one a row")
V = _rows(
    "--v", brief="values, one row for each key",
    help="Values, one row for each key; left out where only weights are wanted.",
)  # fmt: skip
SCORES = _rows("--scores", help="Scores, one row for each query, in place of Q and K; -inf masks a key.")
X = _rows(
    "--x", help="Tokens (T x d), in place of Q, K and V.",
    brief="tokens, with --wq, --wk, --wv in place of these",
)  # fmt: skip
EXAMPLE = option(
    "--example", metavar="NAME", brief="a built-in one: fruit, theatre, dictionary ...",
    help="A built-in example: dictionary, fruit, tensors, tensors-identity, tensors-sharp, theatre, "
    "why-scale.",
)  # fmt: skip
SCORED = option(
    "--scoring", brief_metavar="HOW", panel=_HOW, brief="scaled-dot, dot or additive",
    help="How a query is held against a key. Default: scaled-dot.",
)  # fmt: skip
NO_SCALE = option("--no-scale", panel=_HOW, help="Leave 1/√d_k out: --scoring dot.")
CAUSAL = option(
    "--causal", panel=_HOW, brief="query i looks at keys 0 to i only",
    help="Query i looks at keys 0 to i only.",
)  # fmt: skip
TABLE = option("--table", metavar="KEY=VALUE,...", help="A dictionary to look words up in exactly.")
LOOKUP = option("--lookup", metavar="KEY", help="A word to look up in the dictionary; may be repeated.")
WRONG = option(
    "--wrong", metavar="MISTAKE", panel=_HOW, brief="a usual mistake beside the right result",
    help="Show this mistake beside the right result, with what differs and why: no-transpose, no-scale, "
    "scale-by-d, softmax-axis, no-softmax, exchanged, mask-after-softmax, mask-with-zero.",
)  # fmt: skip
SIZE_OF_VECTORS = option(
    "--d-k", metavar="N", least=1, panel=_HOW,
    help="With --scores: divide them by √N, the size of their vectors.",
)  # fmt: skip
MODEL = option(
    "--model", "-m", metavar="NAME", panel=_THEATRE,
    help="With --example theatre: a head of this model, where its queries, keys and values are made by "
    "matrices alone. Default: demo.",
)  # fmt: skip
LAYER = option("--layer", "-l", metavar="N", panel=_THEATRE, help="Layer for --example theatre. Default: 0.")
HEAD = option(
    "--head", metavar="N", panel=_THEATRE, help="Head for --example theatre. Default: 11 of the demo, else 0."
)  # fmt: skip
OF_KIND = option(
    "--kind", metavar="encoder|decoder|cross", panel=_THEATRE,
    help="Its attention, of --example theatre. Default: cross.",
)  # fmt: skip
DECIMALS = option(
    "--decimals", metavar="N", least=1, most=15, help="Most decimals of a number.",
    brief="most decimals of a number",
)  # fmt: skip


@dataclass(frozen=True)
class Theatre(OfModel["Worked"]):
    """The theatre sentence through one head of a model; the bundled one learned a head for it."""

    BEYOND = "matrices, names"
    KIND, ANSWER = "Worked", "attnscope.verbs.sdpa.answer:through_a_head"

    model: Annotated[str | None, MODEL] = None
    layer: Annotated[str | None, LAYER] = None
    head: Annotated[str | None, HEAD] = None
    kind: Annotated[str | None, OF_KIND] = None
    example: Annotated[str | None, EXAMPLE] = None
    wrong: Annotated[str | None, WRONG] = None
    decimals: Annotated[int, DECIMALS] = 4

    @property
    def request(self) -> ModelRequest:
        """Its model."""
        return ModelRequest("demo" if self.model is None else self.model)

    @property
    def wanted(self) -> Wanted:
        usual = 11 if self.model in ("demo", None) else 0
        layer, head = 0 if self.layer is None else self.layer, usual if self.head is None else self.head
        return Wanted(layer=layer, head=head, kind=self.kind)

    def reads(self, inputs: Inputs) -> tuple["Theatre", Inputs]:
        return self, Inputs(THEATRE)

    def answer(
        self, request: ModelRequest | None, listener: "Listener", opening: "Opening | None" = None
    ) -> "Answer[Worked]":
        return super().answer(request or self.request, listener, opening)

    @classmethod
    def meant_by(cls, given: Any) -> bool:
        return bool(given.get("example") == "theatre")

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        if {*options} & {"FILE", "--table", *(slots(Numbers)[name].option.name for name in (*ARRAYS, *AXES))}:
            return _ONE
        return _LOOKUP if "--lookup" in options else _AS_THEY_ARE


_ONE = "give one of these: arrays, --table or --example"
_LOOKUP = "--lookup goes with --table or --example dictionary"
_AS_THEY_ARE = "a dictionary and the theatre are as they are: leave out the mask and the scoring"


@dataclass(frozen=True)
class Numbers(Alone["Worked | ScaleStudy"]):
    """Arrays from a file, or one by one, typed or each in a file of its own; a dictionary; or an example."""

    KIND, ANSWER = "Worked", "attnscope.verbs.sdpa.answer:work_out"

    file: Annotated[Path | None, FILE] = None
    q: Annotated[Rows, Q] = None
    k: Annotated[Rows, K] = None
    v: Annotated[Rows, V] = None
    scores: Annotated[Rows, SCORES] = None
    x: Annotated[Rows, X] = None
    wq: Annotated[Rows, _rows("--wq", help="X to queries: d x d_k, Q = X Wq.")] = None
    wk: Annotated[Rows, _rows("--wk", help="X to keys: d x d_k.")] = None
    wv: Annotated[Rows, _rows("--wv", help="X to values: d x d_v.")] = None
    wo: Annotated[Rows, _rows("--wo", help="Output back to the width of X: d_v x d.")] = None
    additive_wq: Annotated[Rows, _rows("--additive-wq", help="Aq of additive scoring: d_q x d_a.")] = None
    additive_wk: Annotated[Rows, _rows("--additive-wk", help="Ak of additive scoring: d_k x d_a.")] = None
    additive_v: Annotated[Rows, _rows("--additive-v", help="a of additive scoring: one row of d_a.")] = None
    query_names: Annotated[str | None, _names("--queries", help="Names of the queries.")] = None
    key_names: Annotated[str | None, _names("--keys", help="Names of the keys.")] = None
    token_names: Annotated[str | None, _names("--tokens", help="Names of the rows of X.")] = None
    dims: Annotated[str | None, _names("--dims", help="Names of the columns of Q and K.")] = None
    value_dims: Annotated[str | None, _names("--value-dims", help="Names of the columns of V.")] = None
    example: Annotated[str | None, EXAMPLE] = None
    scoring: Annotated[Scoring | None, SCORED] = None
    no_scale: Annotated[bool, NO_SCALE] = False
    d_k: Annotated[int | None, SIZE_OF_VECTORS] = None
    causal: Annotated[bool, CAUSAL] = False
    wrong: Annotated[str | None, WRONG] = None
    table: Annotated[str | None, TABLE] = None
    lookup: Annotated[list[str] | None, LOOKUP] = None
    decimals: Annotated[int, DECIMALS] = 4

    def __post_init__(self) -> None:
        held: dict[str, Any] = {} if self.file is None else {"file": Path(self.file)}
        held |= {
            key: Path(given)
            for key, given in self.typed(ARRAYS).items()
            if Path(given).suffix.lower() in FILES
        }
        if self.scoring is not None and self.scoring not in (every := tuple(Scoring)):
            raise InputError(f"no scoring '{self.scoring}': {', '.join(every)}")
        if self.no_scale:
            if self.scoring in (Scoring.SCALED_DOT, Scoring.ADDITIVE):
                raise InputError(f"--no-scale contradicts --scoring {self.scoring}: it is --scoring dot")
            held |= {"no_scale": False, "scoring": Scoring.DOT}
        for name, value in held.items():
            object.__setattr__(self, name, value)
        arrays = self.file is not None or bool(self.typed((*ARRAYS, *AXES)))
        if arrays + (self.table is not None) + (self.example is not None) > 1:
            raise InputError(_ONE)
        if self.lookup and self.table is None and self.example != "dictionary":
            raise InputError(_LOOKUP)
        if self.in_another_way and (self.table is not None or self.lookup):
            raise InputError(_AS_THEY_ARE)
        super().__post_init__()

    def typed(self, names: Sequence[str]) -> dict[str, Any]:
        """What was given of these, by name."""
        return {name: given for name in names if (given := getattr(self, name)) is not None}

    @property
    def in_another_way(self) -> bool:
        """Whether anything is to be worked out in another way than an example's own."""
        return self.scoring is not None or self.causal or self.d_k is not None

    @property
    def files_read(self) -> tuple[Path, ...]:
        arrays = self.typed(("file", *ARRAYS)).values()
        return tuple({each for each in arrays if isinstance(each, Path)})

    def known_to(self, result: Any) -> None:
        """Of what was piped in, or has two files of one name, no command says it again."""
        files = self.files_read
        if all(map(os.path.isfile, files)) and len({each.name for each in files}) == len(files):
            super().known_to(result)

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        return "--model, --layer, --head and --kind go with --example theatre"


FORMS = (Theatre, Numbers)
