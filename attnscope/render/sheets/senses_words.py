"""The sentences of one word in many texts: the answer by the case that it is, its control, its limits."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

from attnscope.render.kit.numbers import cell, counted, signed_cell, significant
from attnscope.render.sheet.heads import ordered
from attnscope.render.sheet.said import named
from attnscope.results import Senses
from attnscope.results.claims.senses import LEVEL, Case, Separation, Usage, splits_of

cosine, change = cell, signed_cell  # of cosines: what two decimals do not show is nothing
_FLOOR = 8  # texts with labels: of fewer the answer says how few


def extremes(result: Senses, i: int) -> tuple[str, str]:
    """`1 and 4 (.92)`: the two texts that are most alike in layer number `i`, and the two that are least."""
    most, least = (
        f"{a + 1} and {b + 1} ({cosine(float(result.cosines[i, a, b]))})" for a, b in result.extremes(i)
    )
    return most, least


def answer(result: Senses) -> str:
    """The sentence for the case that it is, and that there are few texts."""
    return " ".join(each for each in (_SAID[result.case](result), _few(result)) if each)


def _unlabelled(result: Senses) -> str:
    most, least = extremes(result, result.shown)
    return (
        f"In layer {result.layers[result.shown]} the texts {most} are most alike in “{result.question}”, "
        f"{least} least."
    )


def _cosines(result: Senses) -> str:
    """`in layer 2, cosine .79 within, .30 between`."""
    i, parted = result.shown, result.separation
    assert parted is not None, "only where there are groups"
    within, between = (cosine(float(each[i])) for each in (parted.within, parted.between))
    return f"in layer {result.layers[i]}, cosine {within} within, {between} between"


def _few_texts(result: Senses) -> str:
    """That nothing could have come out, before any number; and how many texts it would take."""
    parted, texts = result.separation, len(result.usages)
    assert parted is not None, "only where there are groups"
    each, possible = _enough(len(result.labels))
    ways = parted.splits
    groups = Counter(usage.label for usage in result.usages)
    there = " + ".join(str(groups[label]) for label in result.labels)
    wanted = " + ".join([str(each)] * len(result.labels))
    return (
        f"{counted(texts, 'text')} are too few to tell: {there} texts can be split in only {ways} ways, so "
        f"the best possible is 1 in {ways} (with {wanted} it is 1 in {possible}). Here "
        f"“{result.question}” is parted most clearly {_cosines(result)}; {_so_far(parted)}."
    )


def _so_far(parted: Separation) -> str:
    """`2 of the 9 other splits part it as well in some layer`."""
    of = f"{parted.reached or 'none'} of {'the ' if parted.exact else ''}{_labelings(parted)}"
    verb = "parts" if parted.reached < 2 else "part"
    return f"{of} {verb} it as well in {'some' if parted.reached else 'any'} layer"


def _labelings(parted: Separation) -> str:
    """`9 other splits`, `1,000 shufflings of the labels`."""
    return f"{parted.controls:,} {'other splits' if parted.exact else 'shufflings of the labels'}"


def _enough(groups: int) -> tuple[int, int]:
    """How many texts of each of so many groups can tell, and in how many ways these can be split."""
    each = next(size for size in count(2) if splits_of([size] * groups) * LEVEL >= 1)
    return each, splits_of([each] * groups)


def _few_controls(result: Senses) -> str:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    return (
        f"{counted(parted.controls, 'shuffling')} {'is' if parted.controls == 1 else 'are'} too few to tell: "
        f"{round(1 / LEVEL) - 1} are needed. “{result.question}” is parted most clearly {_cosines(result)}."
    )


def _is_parted(result: Senses) -> str:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    return f"The labels part “{result.question}”: {_cosines(result)}; {_so_far(parted)}."


def _cannot_tell(result: Senses) -> str:
    parted = result.separation
    assert parted is not None, "only where there are groups"
    return (
        f"The labels do not part “{result.question}” better than other labels would: they come nearest "
        f"{_cosines(result)}, but {_so_far(parted)}."
    )


_SAID: dict[Case, Callable[[Senses], str]] = {
    Case.UNLABELLED: _unlabelled,
    Case.FEW_TEXTS: _few_texts,
    Case.FEW_CONTROLS: _few_controls,
    Case.PARTED: _is_parted,
    Case.CANNOT_TELL: _cannot_tell,
}


def _few(result: Senses) -> str:
    """How few texts there are, where it is not said already."""
    told = result.case in (Case.PARTED, Case.CANNOT_TELL) and len(result.usages) < _FLOOR
    return f"Only {len(result.usages)} texts." if told else ""


def control(result: Senses) -> str:
    """What the labels are held against; the best layer against the best of every other labeling."""
    parted = result.separation
    if parted is None:
        return "none without labels; lines of LABEL, tab and text have one"
    if parted.exact:
        others = f"every other way to put the labels on the texts ({parted.controls:,})"
    else:
        others = f"the labels shuffled among the texts {parted.controls:,} times"
    return f"{others}; of each only its clearest layer counts"


def notes(result: Senses) -> Iterator[str]:
    """What must be known to read the numbers."""
    if (parted := result.separation) is not None and len(result.heads) > 1:
        best = next(iter(ordered(parted.heads_excess)), (0, 0))
        own, mean = (change(float(each[best])) for each in (parted.heads_gap, parted.heads_control_mean))
        reached = f"in {parted.heads_reached:,} of {_labelings(parted)} some head stands as clear"
        yield f"one head: {named(result, best)} {own}, with other labels {mean}; {reached} of its own"
    if len({each.position for each in result.usages}) > 1:
        yield "the word stands at different positions: these are in its vectors too"
    every = enumerate(result.usages, start=1)
    other = [f"“{each.word}” in text {i}" for i, each in every if is_other(result, each)]
    if other:
        yield f"taken in another form: {', '.join(other)}"


def details(result: Senses) -> Iterator[str]:
    """How often other labels do as well, beside the least that could have come out."""
    if (parted := result.separation) is not None:
        how = f"exact, over all {parted.splits:,} splits" if parted.exact else "of shuffled labels"
        least = significant(parted.least_p)
        yield f"p {significant(parted.p)} ({how}; {least} is the least that could have come out)"


def is_other(result: Senses, usage: Usage) -> bool:
    """Whether the text has another form of the word than was asked for."""
    asked = result.question
    return asked.isalpha() and not result.by.is_long and usage.word.lower() != asked.lower()
