"""`attnscope measures`: lists and explains the registered measures of heads."""

from typing import Annotated

from attnscope.cli.options import JSON
from attnscope.cli.output import PlainOutput
from attnscope.session.option import argument, option

NAME = argument(
    "NAME",
    help="A measure to explain: its formula, unit, range and paper.",
    brief="explain this measure: formula, range, paper",
)  # fmt: skip
EVERY = option("--all", help="List every measure.", brief="list every measure")


def measures(
    name: Annotated[str | None, NAME] = None,
    every: Annotated[bool, EVERY] = False,
    json: Annotated[bool, JSON] = False,
    *,
    output: PlainOutput,
) -> None:
    """List what can be measured of a head, or explain a measure.

    Without NAME five to begin with; --all and --json list all of them, with unit and paper.
    """
    from attnscope.measures import MEASURES, parse_measures
    from attnscope.measures.registry import NORM, formula
    from attnscope.render.terminal import measures as shown
    from attnscope.results.stored.document import MeasureListed, MeasuresListing, measures_document

    names = tuple(MEASURES) if name is None else parse_measures(name)
    listed = [
        MeasureListed(each, each.range, formula(each.name))
        for each in (MEASURES[one].description for one in names)
    ]
    described = [each.described for each in listed]
    if json:
        output.document(measures_document(MeasuresListing(tuple(listed)), shown.answer(described)))
    elif name is None and not every:
        output.show(shown.measures_begun(described, output.width))
    elif every or len(listed) > 1:
        output.show(shown.measures_table(described, output.width))
    else:
        plain = names[0].removesuffix(NORM)
        kin = [one for one in (plain, plain + NORM) if one in MEASURES and one != names[0]]
        output.show(shown.measure_explained(listed[0], output.width, kin))
