"""Which model is opened, how it is loaded, and which attention of it is meant."""

from dataclasses import dataclass
from typing import Annotated

import typer

from attnscope.cli.panels import WHICH, Brief
from attnscope.session import request, wanted

ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help=request.MODEL_HELP,
    ),
    Brief("demo and its like (attnscope -h), hub id or folder", under=WHICH),
]
ProvenName = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="NAME", help=request.PROVEN_HELP),
    ModelName.__metadata__[1],
]
Revision = Annotated[
    str | None, typer.Option("--revision", metavar="REV", help="Branch, tag or commit of a hub model.")
]
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda|cuda:N|mps", help="Where to run.")]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="float32|bfloat16|float16|float64|auto",
        help="Arithmetic of the model; auto is the checkpoint's own.",
    ),
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that a model brings with it.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load pickled weights, which can run code.")
]
Attention = Annotated[
    str | None,
    typer.Option(
        "--attn",
        metavar="eager|sdpa|flex_attention|flash_attention_2",
        help="The kernel that the model runs, which is then held against the recomputation. Default: "
        "eager, and for rows of more than 1,024 tokens the fused one.",
    ),
]
IgnoreUnread = Annotated[
    bool,
    typer.Option(
        "--ignore-unread",
        help="Run without weights inside attention that are stored and that the model has no place for.",
    ),
]
Adapter = Annotated[
    str | None,
    typer.Option(
        "--adapter",
        metavar="FOLDER|none",
        help="Put this adapter into the model (needs the package peft), or none where one is beside its "
        "weights. Default: the one beside them, if any.",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="NAME",
        help="The model or folder whose tokenizer is read, for a checkpoint that comes without one.",
    ),
]
DeviceMap = Annotated[
    str | None,
    typer.Option(
        "--device-map",
        metavar="auto|FILE|JSON",
        help="Spread a model that one device does not hold over devices, memory and disk (needs the package "
        "accelerate): auto, or which part goes where.",
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="DEVICE=SIZE,...",
        help="What --device-map auto may take: cuda:0=10GB,cpu=30GB. Default: nine tenths of what is free.",
    ),
]
Layer = Annotated[
    str | None,
    typer.Option("--layer", "-l", metavar="N", help="Layers, from 0: 3, -1, 0,3,7, 4-8 or all."),
    Brief("from 0: 3, -1 (the last), 0,3,7, 4-8 or all", under=WHICH),
]
Head = Annotated[
    str | None,
    typer.Option(
        "--head",
        "--heads",
        metavar="N",
        help="Heads, from 0: 11, -1, 0,3,7, 4-8 or all. With their layer: L3H11, all heads of one L3, of "
        "several L3-5; for find, explain, ablate and align also L3H11,L2H10. For heads and flow also mean: "
        "over all heads of the layer that is named, or of all layers.",
    ),
    Brief("the same: 11, -1, 0,3,7, 4-8, all; or L3H11, L3, L3-5", metavar="N", under=WHICH),
]
OneLayer = Annotated[
    str,
    typer.Option("--layer", "-l", metavar="N", help="Layer, from 0; -1 is the last."),
    Brief("from 0; -1 is the last", under=WHICH),
]
ArticleLayer = Annotated[
    str | None,
    typer.Option(
        "--layer",
        "-l",
        metavar="N",
        help="Layer, from 0; -1 is the last. Default: 3, of fewer the middle one.",
    ),
    Brief("from 0; -1 is last. Default: 3, else the middle", under=WHICH),
]
ArticleOneHead = Annotated[
    str | None,
    typer.Option(
        "--head",
        "--heads",
        metavar="N",
        help="Head, from 0; -1 is the last. With its layer: L3H11. Default: 11, of fewer the middle one.",
    ),
    Brief("from 0; -1 is last. Default: 11, else the middle", under=WHICH),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="encoder|decoder|cross",
        help="Which attention of a model that has several. Default: cross.",
    ),
    Brief("encoder, decoder or cross, of models with several", metavar="KIND", under=WHICH),
]
Tower = Annotated[
    str | None,
    typer.Option(
        "--tower",
        metavar="NAME",
        help="Which part of a model that has attention in several, as `attnscope model` lists them.",
    ),
]
Block = Annotated[
    int,
    typer.Option(
        "--block",
        metavar="N",
        help="Which of the separate attentions of a layer that makes several (windows of a picture).",
    ),
]
Route = Annotated[
    str | None,
    typer.Option(
        "--route",
        metavar="takeover|custom|traced|returned",
        help="How to read the attention. Default: the first of these that the model allows.",
    ),
]


@dataclass(frozen=True)
class Request(request.ModelRequest):
    """Which model to load, and how."""

    PANEL = "Which model, and how it runs"
    BEYOND = "devices, kernels"

    model: ModelName = None
    device: Device = "auto"
    dtype: Dtype = "float32"
    revision: Revision = None
    trust_remote_code: RemoteCode = False
    allow_pickle: AllowPickle = False
    attention: Attention = None
    ignore_unread: IgnoreUnread = False
    adapter: Adapter = None
    device_map: DeviceMap = None
    max_memory: MaxMemory = None
    tokenizer: Tokenizer = None

    def __post_init__(self) -> None:
        super().__post_init__()
        request.check_place(self.model)


@dataclass(frozen=True)
class ProvenModel(Request):
    """A request for what is said of a model, and of no other one in its place."""

    model: ProvenName = None
    stand_in = False


@dataclass(frozen=True)
class Wanted(wanted.Wanted):
    """Which layers and heads of which kind of attention, as the user wrote them."""

    PANEL = "Which attention"

    layer: Layer = None
    head: Head = None
    kind: Kind = None
    tower: Tower = None
    block: Block = 0
    route: Route = None


@dataclass(frozen=True)
class ArticleHead(Wanted):
    """One head, by default the one that the articles look at, or one in the middle of a smaller model."""

    USUAL = (3, 11)

    layer: ArticleLayer = None
    head: ArticleOneHead = None
