"""Numbers and names as the rows of a table have them."""

Row = tuple[object, ...]
# ends of columns that are names, even where they look like numbers or are empty
CALLED = ("token", "tokens", "label", "name", "tower", "side")


def exact(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value))
