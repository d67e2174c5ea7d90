"""Which results have no picture, and why not in one line."""

from attnscope.results import Check, Outline

NO_PICTURE: dict[type, str] = {
    Outline: "an outline of a model has no picture: it is a table of layers",
    Check: "a check of a stored run has no picture: it is a line for each head",
}
