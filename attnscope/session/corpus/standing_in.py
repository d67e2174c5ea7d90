"""Standard input as a file, since a corpus is walked through more than once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attnscope.ending import temporary_folder

NAME = "standard-input"


@contextmanager
def standing_in(files: Sequence[str], read: Callable[[], bytes]) -> Iterator[tuple[Path, ...]]:
    """The files, with one in the place of `-`, which holds what `read` gives and goes when this ends."""
    if "-" not in files:
        yield tuple(map(Path, files))
        return
    with temporary_folder() as folder:
        place = Path(folder) / NAME
        place.write_bytes(read())
        yield tuple(place if each == "-" else Path(each) for each in files)
