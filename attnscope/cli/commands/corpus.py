"""`attnscope corpus`: all measures of all heads over a corpus, which can be cut off and goes on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.options.delivery import Delivery
from attnscope.cli.options.model import ProvenModel, Wanted
from attnscope.cli.output import Output, check_delivery, typed_command
from attnscope.cli.panels import OUT, Brief
from attnscope.errors import InputError
from attnscope.printable import word
from attnscope.process.ending import undone_by_a_signal

if TYPE_CHECKING:
    from attnscope.session.corpus.engine.interface import Done
    from attnscope.session.corpus.engine.interface import Progress as CorpusProgress

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Texts: a line each, .jsonl, .conllu or .parquet, compressed or not; a folder, a pattern, "
        "s3://, gs://, https://, hf://datasets/NAME:SPLIT; '-' reads standard input.",
    ),
    Brief("texts: files, folders, s3://, hf://datasets/NAME:SPLIT"),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="lines|file|jsonl|conllu|parquet",
        help="How texts stand in the files; file: each is one text. Default: by suffix, else lines.",
    ),
]
Field = Annotated[str, typer.Option("--field", metavar="NAME", help="The field of .jsonl and .parquet.")]
Measures = Annotated[
    str,
    typer.Option(
        "--measure",
        metavar="NAME,NAME,...",
        help="What to measure, as `attnscope measures` lists it, or all.",
    ),
    Brief("what to measure (attnscope measures), or all", metavar="NAME"),
]
FromPos = Annotated[
    str | None,
    typer.Option(
        "--from-pos", metavar="TAG", help="Rank heads by what words of this part of speech (.conllu) give..."
    ),
    Brief("rank heads by what this part of speech gives ..."),
]
ToPos = Annotated[
    str | None,
    typer.Option("--to-pos", metavar="TAG", help="...to words of this one."),
    Brief("... to this one (.conllu)"),
]
Broken = Annotated[
    str,
    typer.Option(
        "--broken",
        metavar="skip|refuse",
        help="Set aside what cannot be read (broken lines, damaged archives) and tell it, or end with it.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Read the first N texts. Default: all."),
]
Longest = Annotated[
    int,
    typer.Option("--longest", metavar="N", help="Set texts of more tokens aside, or cut them (--truncate)."),
]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut texts that are longer than that.")]
Batch = Annotated[
    int, typer.Option("--batch", metavar="N", help="At most so many texts of about one length at once.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        help="Processes that measure, 0: this one. Default: one for each accelerator, else each core; "
        "0 for up to 32 texts.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", metavar="local|ray", help="Who runs them: this machine, or Ray on one or many machines."
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT|auto",
        help="A Ray cluster that exists (or $RAY_ADDRESS). Default: one is started on this machine.",
    ),
]
RayResources = Annotated[
    str | None,
    typer.Option(
        "--ray-resources",
        metavar="NAME=N,...",
        help="What each worker takes of its machine, as GPU=0.5,memory=8GB. Default: CPU=1, with --device "
        "cuda also GPU=1.",
    ),
]
Run = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="FOLDER",
        help="Where the run is kept, so that the same command goes on: a folder, or an address such as "
        "s3://bucket/run. Default: outputs/corpus-...",
    ),
    Brief("where the run is kept, and goes on", under=OUT),
]
Rows = Annotated[
    str | None,
    typer.Option("--rows", metavar="FILE", help="Also write a row for each text and head, as .parquet."),
]
_ALL = "all"  # measures


@dataclass(frozen=True)
class CorpusRead:
    """Which files are read, and how texts stand in them."""

    PANEL = "What is read"

    files: Files
    form: Form = None
    field: Field = "text"
    broken: Broken = "skip"
    limit: Limit = None
    longest: Longest = 1024
    truncate: Truncate = False

    def __post_init__(self) -> None:
        from attnscope.session.corpus.named import check_named

        for file in self.files:
            check_named(file)

    @property
    def departures(self) -> Iterator[str]:
        """What is not as it comes, as options."""
        given = {
            "--format": self.form,
            "--field": self.field,
            "--broken": self.broken,
            "--limit": self.limit,
            "--longest": self.longest,
        }
        usual = {"--field": "text", "--broken": "skip", "--longest": 1024}
        yield from (f"{each} {word(str(value))}" for each, value in given.items() if value != usual.get(each))
        yield from ["--truncate"] * self.truncate


@dataclass(frozen=True)
class CorpusRun:
    """Who measures, and where it is kept."""

    PANEL = "The run"
    BEYOND = "Ray"

    workers: Workers = None
    engine: Engine = "local"
    ray_address: RayAddress = None
    ray_resources: RayResources = None
    batch: Batch = 32
    run: Run = None
    rows: Rows = None


def corpus(
    read: CorpusRead,
    wanted: Wanted,
    measures: Measures = _ALL,
    from_pos: FromPos = None,
    to_pos: ToPos = None,
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
    check_delivery(delivery, "Corpus")
    if running.rows is not None and Path(running.rows).suffix.lower() != ".parquet":
        raise InputError(f"--rows is '{running.rows}': its name ends in .parquet")
    from attnscope.session.corpus.question import CorpusQuestion, corpus_of

    asked = CorpusQuestion(
        **vars(read),
        **vars(running),
        measures=measures,
        source=from_pos,
        target=to_pos,
        command=typed_command("FILE"),
    )
    with _counting(output.quiet) as done:
        result = corpus_of(request, asked, wanted, output, done)
    from attnscope.cli.again import run_again
    from attnscope.render.focus import Focus

    alone = len(read.files) == 1 and str(read.files[0]) != "-"
    again = (word(str(read.files[0])), *read.departures) if alone else None
    with run_again(request, wanted, again):
        output.deliver(result, delivery, Focus(in_nats=measures != _ALL))


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
        """The bar is there from the first count to the last, so that it stands in no spinner's way."""
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
