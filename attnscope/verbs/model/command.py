"""`attnscope model`: outlines a model and the cost of one head, without loading weights."""

from typing import Annotated

from attnscope.cli.options import JSON, Delivery
from attnscope.cli.output import Output
from attnscope.errors import InputError
from attnscope.process.machine import digests_folder
from attnscope.session.option import WHICH, argument, option
from attnscope.session.request import NAME, REMOTE_CODE, REVISION, check_place
from attnscope.session.wanted import KIND, TOWER, Wanted

NAMED = argument("NAME", help=NAME.help, brief="a bundled model, hub id or folder")
ONE_LAYER = option(
    "--layer", "-l", metavar="N", under=WHICH,
    help="Layer, from 0; -1 is the last.",
    brief="from 0; -1 is the last",
)  # fmt: skip
LENGTH = option(
    "--length", metavar="N[,N...]", brief_metavar="N",
    help="Tokens of the text that the cost is reckoned for; several make a table, 128,1024,8192, also beyond "
    "what the model reads. Default: 512, or as many as the model reads.",
    brief="what one head costs at so many tokens",
)  # fmt: skip


def model(
    name: Annotated[str | None, NAMED] = None,
    model: Annotated[str | None, NAME] = None,
    layer: Annotated[str, ONE_LAYER] = "-1",
    length: Annotated[str | None, LENGTH] = None,
    kind: Annotated[str | None, KIND] = None,
    tower: Annotated[str | None, TOWER] = None,
    revision: Annotated[str | None, REVISION] = None,
    trust_remote_code: Annotated[bool, REMOTE_CODE] = False,
    json: Annotated[bool, JSON] = False,
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
    check_place(model if name is None else name)
    wanted = Wanted(layer=layer, kind=kind, tower=tower)
    from attnscope.verbs.model.answer import outline_model, time_of

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
