"""`attnscope model`: what there is to look at in a model, before any of its weights is fetched or read."""

from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli import options, selection
from attnscope.cli.groups import KINDS
from attnscope.cli.output import Output
from attnscope.errors import InputError, listed

if TYPE_CHECKING:
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.loading.load import Plan

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="Hub id, local folder, or a bundled model: demo, demo-causal, demo-translate. Default: "
        "ATTNSCOPE_MODEL, else bert-base-uncased, else the demo where the hub cannot be reached.",
        show_default=False,
    ),
]
Length = Annotated[
    int | None,
    typer.Option(
        "--length",
        metavar="N",
        help="Tokens of the text that the cost is reckoned for. Default: 512, or as many as the model reads.",
    ),
]


def model(
    name: Name = None,
    layer: options.OneLayer = "-1",
    length: Length = None,
    kind: options.Kind = None,
    tower: options.Tower = None,
    revision: options.Revision = None,
    trust_remote_code: options.RemoteCode = False,
    json: options.Json = False,
    *,
    output: Output,
) -> None:
    """Show what there is to look at in a model, without its weights.

    Its attention layers with heads, dimensions, positions and windows, the layers that have none, and what
    one head of --layer would cost. Of a hub model only the configuration is fetched.
    """
    if kind not in (None, *KINDS):
        raise InputError(f"no kind of attention '{kind}': {', '.join(KINDS)}")
    wanted = selection.parse(layer, "layer")
    with output.working("looking for the model"):
        from attnscope.model.source.address import check_endpoint

        check_endpoint()
        from attnscope.model.source.find import find

        source = find(name, revision=revision, remote_code=trust_remote_code, weights=False)
        if source.notice:
            output.notice(source.notice)
    with output.working(f"looking at {source.name}"):
        from attnscope.analysis.outline import outline
        from attnscope.model.loading import load
        from attnscope.model.source.listing import listing

        listed_files = listing(source)
        planned = load.plan(listed_files.checkpoint, remote_code=trust_remote_code)
        chosen = _tower(planned, kind, tower)
        number = -1 if chosen is None else _layer(planned, chosen, wanted)
        result = outline(planned, listed_files, tower=chosen, layer=number, length=length)
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        output.show(terminal.outline(result, output.width))


def _tower(planned: "Plan", kind: str | None, name: str | None) -> "Tower | None":
    """The tower that is wanted, else the one that reads text; None where there is no attention."""
    from attnscope.model.anatomy.towers import choose_tower, reading_text
    from attnscope.results import Kind

    if kind is not None or name is not None:
        return choose_tower(planned.towers, None if kind is None else Kind(kind), name, planned.name)
    return reading_text(planned.towers) if planned.towers else None


def _layer(planned: "Plan", tower: "Tower", wanted: list[tuple[int, int]] | None) -> int:
    from attnscope.model.anatomy.towers import layers_without

    where = f"{planned.name} ({tower.called}): layers {listed(tower.layers)}"
    chosen = selection.choose(wanted, tower.layers, "layer", where, layers_without(planned.skeleton, tower))
    if len(chosen) != 1:
        raise InputError(f"the cost is that of one layer, --layer names {len(chosen)}: {listed(chosen)}")
    return chosen[0]
