"""A result for every case and every optional part of what `find` without a pair says."""

from collections.abc import Callable
from dataclasses import replace

from made_links import links

from attnscope.render.sheets import links as sheets
from attnscope.results import Links
from attnscope.results.claims.links import Case

SAID, CASES = sheets.said, Case


def explained_by(name: str) -> Links:
    """Links of which this explains most."""
    made = links(more=3)
    return replace(made, links=tuple(replace(each, **{name: 0.3}) for each in made.links))


EXAMPLES: dict[str, Callable[[], Links]] = {
    "several": links,
    "one": lambda: links(found=1),
    "one that few texts have as well": lambda: links(found=1, controls=40, as_clear=1),
    "cannot tell": lambda: links(as_clear=7),
    "few controls": lambda: links(controls=18),
    "nothing": lambda: links(found=0),
    "distance": lambda: explained_by("distance"),
    "others": lambda: explained_by("others"),
    "even": lambda: explained_by("even"),
}
