"""The grids of a page about a corpus, or about two: every measure of every head, beside its error."""

from attnscope.render.web.grids import Grid, grid
from attnscope.results import Corpus, CorpusDifference


def of_corpus(found: Corpus) -> list[Grid]:
    """A grid for each measure that has a meaning, that which is looked at first."""
    main = found.main.scores.measure
    there = [each for each in found.measures.values() if not each.absent]
    made = []
    for each in sorted(there, key=lambda one: one.scores.measure != main):
        told, classes = each.scores.description, each.scores.description.classes
        error = ("standard error over texts", each.error)
        share = None if each.agreement is None else ("share of texts of the class", each.agreement)
        made.append(
            grid(
                told.name,
                found.layers,
                found.heads,
                each.values,
                unit=told.unit,
                limits=None if told.signed else each.scores.limits,
                signed=told.signed,
                control=share or error,
                classes=classes,
                low=told.strong == "low",
                says=" · ".join(filter(None, (told.meaning, told.paper))),
            )
        )
    return made


def of_corpora(found: CorpusDifference) -> list[Grid]:
    """The difference by each measure, that which is looked at first."""
    main = found.main
    made = []
    for each in sorted(found.measures.values(), key=lambda one: one is not main):
        told = each.scores.description
        control = "standard error of the difference", each.error
        made.append(
            grid(
                f"{told.name}, B less A",
                found.layers,
                found.heads,
                each.difference,
                unit=told.unit,
                signed=True,
                control=control,
                says=told.meaning,
            )
        )
    return made
