"""What a card says of its runs: how many there were, which one is bundled, how far they lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

WIDTH = 120
COUNTED = {2: "Two", 3: "Three", 4: "Four"}


def said(values: Sequence[float], of_what: str, digits: int = 1) -> str:
    """The sentences before the table of runs; `values` are a share of each run, the bundled one first."""
    if len(values) == 1:
        return "One run was made, with one seed: how much runs differ is not known."
    low, high = (f"{value:.{digits}%}" for value in (min(values), max(values)))
    between = f"{low} in every run" if low == high else f"from run to run between {low} and {high}"
    return (
        f"{COUNTED.get(len(values), len(values))} runs were made. The bundled one is the first of the table, "
        f"chosen before the others were measured; {of_what}: {between}."
    )


def wrapped(text: str) -> str:
    """The text in lines as long as those of the cards."""
    return "\n".join(wrap(text, WIDTH))
