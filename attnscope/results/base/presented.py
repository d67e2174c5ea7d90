"""How a result shows itself: in a console, in a notebook, in a picture, in a table and in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope import presenter
from attnscope.results.base.origin import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


class Presented:
    """What every result can do for somebody who looks at it; `repr` is one line, `print` the whole.

    All of it is done by the presenter that the package names (`attnscope.render.present`); matplotlib and
    pandas are loaded when they are needed.
    """

    for_readers: tuple[str, ...] = ("verdict",)  # properties that files have beside the fields
    from_file = False  # whether it was read from one
    asked_by: tuple[str, ...] = ()  # what it answers, as words of a command: "find", "--from", "it"

    @property
    def verdict(self) -> Verdict | None:
        """What is proved of its numbers, the worst of it; None where there is nothing to certify:
        an outline computes nothing, for a prediction the model runs untouched.
        """
        return None

    def __repr__(self) -> str:
        return str(presenter.load().summary(self))

    def __str__(self) -> str:
        return str(presenter.load().text(self))

    def _repr_html_(self) -> str:
        return str(presenter.load().html(self))

    def page(self) -> Any:
        """The interactive page, which a notebook shows where a cell ends with it; `save` writes it as .html.

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
        """Draw it on `ax`, which is returned, or without one on a page of its own, a finished Figure.

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
        """Write it to `path`, whole or not at all, as .png, .svg, .pdf, .npz, .json or .csv; the path again.

        `show`, `query`, `key` and `scale` are those of `plot`.

        Of a claim also as .py, a script that computes its figures again with torch and transformers alone.
        Raises `InputError` for another suffix, for a picture where there is none, and where it cannot be
        written. A picture is that of `plot`, with the same `look`; numbers are always all of them.
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
        """What a terminal of `width` cells shows, without colour; `print(result)` is that of the whole.

        `show`, `query`, `key` and `scale` are those of `plot`.

        Raises `InputError` for a stage or a token that the result does not have.
        """
        return str(presenter.load().text(self, show=show, query=query, key=key, scale=scale, width=width))

    def to_pandas(self, show: str | None = None) -> "DataFrame":
        """The numbers with their names: a row a query, layer, head, point or guess, as the result has them.

        `show` is a stage of a head. Raises `InputError` where pandas is not installed, which comes with
        `pip install 'attnscope[pandas]'`.
        """
        frame: DataFrame = presenter.load().to_pandas(self, show)
        return frame
