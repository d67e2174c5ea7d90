"""The command `attnscope corpus`: measures all heads over a corpus, and resumes a run that was cut off."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from attnscope.cli.options import Delivery
from attnscope.cli.output import Output, check_delivery, typed_command
from attnscope.errors import InputError
from attnscope.process.ending import undone_by_a_signal
from attnscope.session.request import ProvenModel
from attnscope.session.wanted import Wanted
from attnscope.verbs.corpus.question import ALL, CorpusFiles, CorpusMeasures, CorpusQuestion, CorpusRun

if TYPE_CHECKING:
    from attnscope.verbs.corpus.engine import Done
    from attnscope.verbs.corpus.engine import Progress as CorpusProgress


def corpus(
    read: CorpusFiles,
    wanted: Wanted,
    measured: CorpusMeasures,
    *,
    running: CorpusRun,
    delivery: Delivery,
    request: ProvenModel,
    output: Output,
) -> None:
    """Measure every head over a corpus.

    Mean, standard error and quantiles over its texts. Cut off at any point (Ctrl-C, kill, power), the same
    command goes on where it was, and the result is the same: on the same machine bit for bit. What cannot
    be read is counted, told, and kept in set-aside.jsonl in the run's folder. Heads that link words of one
    part of speech to those of another (--from-pos with --to-pos) are ranked, beside what their distances
    explain. Two corpora: attnscope compare A.npz B.npz.
    """
    from attnscope.verbs.corpus.source import check_named

    for file in read.places:
        check_named(str(file))
    check_delivery(delivery, "Corpus")
    if running.rows is not None and Path(running.rows).suffix.lower() != ".parquet":
        raise InputError(f"--rows is '{running.rows}': its name ends in .parquet")
    from attnscope.verbs.corpus.answer import corpus_of

    asked = CorpusQuestion(**vars(read), **vars(measured), **vars(running))
    with _counting(output.quiet) as done:
        result = corpus_of(request, asked, wanted, output, done, command=typed_command("FILE"))
    from attnscope.render.sheets import Focus

    output.deliver(result, delivery, Focus(in_nats=asked.measures != ALL))


@contextmanager
def _counting(quiet: bool) -> "Iterator[Done | None]":
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from attnscope.render.terminal.console import Paper

    columns = (
        BarColumn(None),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]} · left"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Paper(stderr=True), transient=True, speed_estimate_period=600)
    task = bar.add_task("", total=None, rate="starting")
    begun = monotonic()

    def count(now: "CorpusProgress") -> None:
        """Moves the progress bar; it shows from the first count to the last, so that no spinner meets it."""
        if not now.texts:  # what was measured before says nothing of how fast this goes
            bar.reset(task, start=True, total=now.whole, completed=now.through)
        passed = monotonic() - begun
        rate = (
            f"{now.texts:,} texts · {now.tokens / passed:,.0f} tokens a second" if now.texts else "starting"
        )
        bar.update(task, completed=now.through, total=now.whole, rate=rate)
        if now.forecast is not None:
            bar.console.print(f"note: {now.forecast}", style="dim", soft_wrap=True)
        bar.start() if now.through < now.whole else bar.stop()

    with undone_by_a_signal(bar.stop):
        try:
            yield count
        finally:
            bar.stop()
