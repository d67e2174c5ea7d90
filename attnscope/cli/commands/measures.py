"""`attnscope measures`: what can be measured of a head, from the registry."""

from attnscope.cli.options.delivery import Json
from attnscope.cli.output import Output


def measures(json: Json = False, *, output: Output) -> None:
    """List what can be measured of a head, with unit and paper."""
    from attnscope.measures import MEASURES
    from attnscope.render.terminal.measures import measures_json, measures_table

    listed = [measure.description for measure in MEASURES.values()]
    if json:
        output.document(measures_json(listed))
    else:
        output.show(measures_table(listed, output.width))
