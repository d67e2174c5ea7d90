"""A bar for what takes long and can be counted: how far it is, how fast it goes, how long it takes still."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attnscope.ending import undone_by_a_signal


@contextmanager
def counting(noun: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """While open, what it gives is told how many are through, of how many; a bar where it can be seen."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, emoji=False, markup=False, highlight=False)
    columns = (
        BarColumn(None),
        MofNCompleteColumn(),
        TextColumn(f"{noun}s · {{task.fields[rate]}} · left"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, transient=True, speed_estimate_period=120)
    task = bar.add_task("", total=None, rate="starting")

    def told(done: int, whole: int) -> None:
        """The bar is there from the first count to the last, so that it stands in no spinner's way."""
        speed = bar.tasks[0].speed
        bar.update(task, completed=done, total=whole, rate=f"{speed:,.1f} a second" if speed else "starting")
        bar.start() if done < whole else bar.stop()

    with undone_by_a_signal(bar.stop):
        try:
            yield told
        finally:
            bar.stop()
