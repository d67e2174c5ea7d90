"""How far a corpus is, where Python asked for it: a bar with a rate and the time left, also in a notebook.

Above it stands what all of it will take, once the first part is measured. What was measured before this call
counts as through, and not for the rate.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from time import monotonic

from attnscope.session.corpus.engine.interface import Done, Progress

_FORMAT = "{l_bar}{bar}| {elapsed} gone, {remaining} left{postfix}"


@contextmanager
def bar(wanted: bool | None) -> Iterator[Done | None]:
    """A bar that is moved by what this gives, None for no bar.

    Without a wish there is one in a notebook, and where somebody reads standard error at a terminal.
    """
    if not (_is_read() if wanted is None else wanted):
        yield None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a notebook without widgets gets a bar of letters
        from tqdm.auto import tqdm

    wide = None if _in_notebook() else get_terminal_size().columns  # 80 where it is said to have none
    shown, begun = tqdm(desc="corpus", ncols=wide, bar_format=_FORMAT), monotonic()

    def done(now: Progress) -> None:
        shown.total = now.whole
        if not now.texts:
            shown.initial = shown.n = now.through
            shown.refresh()
            return
        if now.forecast is not None:
            shown.write(str(now.forecast), file=sys.stderr)
        rate = now.tokens / max(monotonic() - begun, 1e-9)
        shown.set_postfix_str(f"{now.texts:,} texts, {rate:,.0f} tokens a second", refresh=False)
        shown.update(now.through - shown.n)

    with shown:
        yield done


def _is_read() -> bool:
    return _in_notebook() or sys.stderr.isatty()


def _in_notebook() -> bool:
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")
