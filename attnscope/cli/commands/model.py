"""`attnscope model`: what there is to look at in a model, before any of its weights is fetched or read."""

from typing import Annotated

import typer

from attnscope.cli.options.delivery import Delivery, Json
from attnscope.cli.options.model import Kind, ModelName, OneLayer, RemoteCode, Revision, Tower
from attnscope.cli.output import Output
from attnscope.cli.panels import Brief
from attnscope.errors import InputError
from attnscope.process.machine import digests_folder
from attnscope.session import request
from attnscope.session.wanted import Wanted

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help=request.MODEL_HELP,
    ),
    Brief("a bundled model, hub id or folder"),
]
Length = Annotated[
    str | None,
    typer.Option(
        "--length",
        metavar="N[,N...]",
        help="Tokens of the text that the cost is reckoned for; several make a table, 128,1024,8192, also "
        "beyond what the model reads. Default: 512, or as many as the model reads.",
    ),
    Brief("what one head costs at so many tokens", metavar="N"),
]


def model(
    name: Name = None,
    model: ModelName = None,
    layer: OneLayer = "-1",
    length: Length = None,
    kind: Kind = None,
    tower: Tower = None,
    revision: Revision = None,
    trust_remote_code: RemoteCode = False,
    json: Json = False,
    *,
    output: Output,
) -> None:
    """Show what there is to look at in a model, without its weights.

    Its attention layers with heads, dimensions, positions and windows, the layers that have none, and what
    one head of --layer would cost. Of a hub model only the configuration is fetched. With -v also how long
    the products of that head take on this machine, which is measured then.
    """
    if name is not None and model is not None:
        raise InputError("NAME and --model: give one of the two")
    request.check_place(model if name is None else name)
    wanted = Wanted(layer=layer, kind=kind, tower=tower)
    from attnscope.session.questions.outline import outline_model, time_of

    result = outline_model(
        model if name is None else name,
        wanted,
        output,
        revision=revision,
        remote_code=trust_remote_code,
        length=length,
    )
    if (folder := digests_folder()) is not None:
        output.detail(f"hashes of large weight files are remembered in {folder} (ATTNSCOPE_DIGESTS=off: not)")
    if output.verbose and result.cost is not None:
        from attnscope.render.sheets.outline import speed_words

        output.detail(speed_words(*time_of(result.cost)))
    output.deliver(result, Delivery(json=json))
