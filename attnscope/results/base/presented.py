"""The display interface of results: console, notebook, plots, tables and files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attnscope import presenter
from attnscope.errors import Damaged
from attnscope.results.base.origin import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Presented:
    """Base of every result: display, plotting, saving and tables; `repr` is one line, `print` the whole.

    All of it is done by the presenter that the package names (`attnscope.render.present`); matplotlib and
    pandas are loaded when they are needed.
    """

    for_readers: tuple[str, ...] = ("verdict",)  # properties that files have beside the fields
    from_file = False  # whether it was read from one
    asked_by: tuple[str, ...] = ()  # what it answers, as words of a command: "find", "--from", "it"
    asked_of: Mapping[str, str] = {}  # the SHA-256 of each file that these words name
    asks_alone = False  # whether they say all of it, with no text and no model beside them

    @property
    def verdict(self) -> Verdict | None:
        """The worst verdict on its numbers; None where nothing is certified (an outline, a prediction)."""
        return None

    def __repr__(self) -> str:
        return str(presenter.load().summary(self))

    def __str__(self) -> str:
        return str(presenter.load().text(self))

    def _repr_html_(self) -> str:
        return str(presenter.load().html(self))

    def page(self) -> Any:
        """The interactive page: a notebook shows it as a cell's last value, `save` writes it as .html.

        Raises `InputError` where it is too large for a notebook.
        """
        return presenter.load().page(self)

    def _repr_png_(self) -> bytes | None:
        png: bytes | None = presenter.load().png(self)
        return png

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        show: str | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        scale: str | None = None,
        **look: Any,
    ) -> "Axes | Figure":
        """Draws the result on `ax` and returns `ax`, or returns a new Figure.

        `show` is the stage of a head (`weights`, `scores`, `scaled`, `q`, `k`, `v`, `output`), `query` and
        `key` are tokens by text or position, `scale` is how dark weights are (`auto`, `max`, `row`, `1`,
        `log`). The page's `look` is `title` (a text, or `none`), `size` (width
        and height in inches, as it will be saved or shown), `dpi`, `caption` (`short`, `full`, `none`) and
        `bare`, the axes alone. Raises `InputError` for what has no such picture.
        """
        drawn: Axes | Figure = presenter.load().plot(
            self, ax, show=show, query=query, key=key, scale=scale, look=look
        )
        return drawn

    def save(
        self,
        path: str | Path,
        *,
        show: str | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        scale: str | None = None,
        **look: Any,
    ) -> Path:
        """Writes the result atomically to `path` (.png, .svg, .pdf, .npz, .json or .csv); returns the path.

        `show`, `query`, `key` and `scale` are those of `plot`. A claim is also written as .py, a script that
        computes its figures again with torch and transformers alone. Raises `InputError` for another suffix,
        for a picture where there is none, and where it cannot be written. A picture is that of `plot`, with
        the same `look`; numbers are always all of them.
        """
        written: Path = presenter.load().save(
            self, path, show=show, query=query, key=key, scale=scale, look=look
        )
        return written

    def text(
        self,
        *,
        show: str | None = None,
        query: str | int | None = None,
        key: str | int | None = None,
        scale: str | None = None,
        width: int | None = None,
    ) -> str:
        """The text that a terminal of `width` cells shows, without colour.

        `show`, `query`, `key` and `scale` are those of `plot`. Raises `InputError` for a stage or a token
        that the result does not have.
        """
        return str(presenter.load().text(self, show=show, query=query, key=key, scale=scale, width=width))

    def to_pandas(self, show: str | None = None) -> "DataFrame":
        """The numbers as a DataFrame, a row per query, layer, head, point or guess.

        `show` is a stage of a head. Raises `InputError` where pandas is not installed, which comes with
        `pip install 'attnscope[pandas]'`.
        """
        frame: DataFrame = presenter.load().to_pandas(self, show)
        return frame


Value: TypeAlias = Any  # anything that json writes, and arrays of numbers before it does
Arrays: TypeAlias = dict[str, np.ndarray]  # by name
_ROUNDING = 1e-4  # of a probability, and of a sum of them, in whatever precision


def fits(right: bool | np.bool_, wrong: str) -> None:
    if not right:
        raise Damaged(wrong)


def in_chances(values: Iterable[float], name: str, together: bool = False) -> None:
    """Raises `Damaged` where values are no probabilities, or, if `together`, sum to more than 1."""
    every = np.fromiter(values, float)
    fits(not ((every < 0) | (every > 1 + _ROUNDING)).any(), f"'{name}' is no probability")
    fits(not together or not np.nansum(every) > 1 + _ROUNDING, f"'{name}' are above 1 together")


def within(position: int | None, size: int) -> bool:
    """Whether `position` is a valid index below `size`; None (no position) is allowed."""
    return position is None or 0 <= position < size


def in_tokens(positions: Iterable[int | None], size: int, name: str) -> None:
    fits(all(within(position, size) for position in positions), f"'{name}' has a position that is no token's")


def one_for_each(rows: tuple[tuple[Any, ...], ...], shape: tuple[int, ...], name: str) -> None:
    """Raises `Damaged` where `rows` does not have an entry for each layer and head."""
    right = [len(row) for row in rows] == [shape[1]] * shape[0] and bool(rows) and bool(shape[1])
    fits(right, f"'{name}' are not one for each of the layers and heads")


def columns_of(rows: Iterable[Any], whole: tuple[str, ...], numbers: tuple[str, ...] = ()) -> Arrays:
    """A column for each attribute of `rows`; None becomes -1 in integer columns and NaN in others."""
    every = list(rows)
    kinds = [(whole, np.int64, -1), (numbers, np.float64, np.nan)]
    return {
        name: np.array([none if (value := getattr(row, name)) is None else value for row in every], kind)
        for names, kind, none in kinds
        for name in names
    }
