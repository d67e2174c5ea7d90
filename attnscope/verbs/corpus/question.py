"""What is asked of a corpus: which files, what is measured in them, and where the run is kept."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from attnscope.errors import InputError
from attnscope.printable import FileWord
from attnscope.session.option import OUT, argument, option, slots, words

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)
SKIP, REFUSE = "skip", "refuse"
BROKEN = (SKIP, REFUSE)  # what becomes of what cannot be read
ALL = "all"  # measures
FIELD = "text"
LONGEST = 1024  # tokens of a text: the weights of a layer are quadratic in them
BATCH = 32

FILES = argument(
    "FILE", several=True, brief="texts: files, folders, s3://, hf://datasets/NAME:SPLIT",
    help="Texts: a line each, .jsonl, .conllu or .parquet, compressed or not; a folder, a pattern, "
    "s3://, gs://, https://, hf://datasets/NAME:SPLIT; '-' reads standard input.",
)  # fmt: skip
FORM = option(
    "--format", metavar="lines|file|jsonl|conllu|parquet",
    help="How texts stand in the files; file: each is one text. Default: by suffix, else lines.",
)  # fmt: skip
FIELD_OF = option("--field", metavar="NAME", help="The field of .jsonl and .parquet.")
MEASURES = option(
    "--measure", metavar="NAME,NAME,...", brief_metavar="NAME",
    help="What to measure, as `attnscope measures` lists it, or all.",
    brief="what to measure (attnscope measures), or all",
)  # fmt: skip
FROM_POS = option(
    "--from-pos", metavar="TAG", help="Rank heads by what words of this part of speech (.conllu) give...",
    brief="rank heads by what this part of speech gives ...",
)  # fmt: skip
TO_POS = option("--to-pos", metavar="TAG", help="...to words of this one.", brief="... to this one (.conllu)")
IF_BROKEN = option(
    "--broken", metavar="skip|refuse",
    help="Set aside what cannot be read (broken lines, damaged archives) and tell it, or end with it.",
)  # fmt: skip
LIMIT = option("--limit", metavar="N", help="Read the first N texts. Default: all.")
LONGEST_TEXT = option(
    "--longest", metavar="N", help="Set texts of more tokens aside, or cut them (--truncate)."
)
TRUNCATE = option("--truncate", help="Cut texts that are longer than that.")
BATCH_OF = option("--batch", metavar="N", help="At most so many texts of about one length at once.")
WORKERS = option(
    "--workers", metavar="N",
    help="Processes that measure, 0: this one. Default: one for each accelerator, else each core; "
    "0 for up to 32 texts.",
)  # fmt: skip
ENGINE = option(
    "--engine", metavar="local|ray", help="Who runs them: this machine, or Ray on one or many machines."
)
RAY_ADDRESS = option(
    "--ray-address", metavar="HOST:PORT|auto",
    help="A Ray cluster that exists (or $RAY_ADDRESS). Default: one is started on this machine.",
)  # fmt: skip
RAY_RESOURCES = option(
    "--ray-resources", metavar="NAME=N,...",
    help="What each worker takes of its machine, as GPU=0.5,memory=8GB. Default: CPU=1, with --device "
    "cuda also GPU=1.",
)  # fmt: skip
RUN = option(
    "--run", metavar="FOLDER", under=OUT,
    help="Where the run is kept, so that the same command goes on: a folder, or an address such as "
    "s3://bucket/run. Default: outputs/corpus-...",
    brief="where the run is kept, and goes on",
)  # fmt: skip
ROWS = option("--rows", metavar="FILE", help="Also write a row for each text and head, as .parquet.")


@dataclass(frozen=True)
class CorpusFiles:
    """Which files are read, and how texts stand in them.

    What cannot be read is set aside, or, with `broken` as `refuse`, ends the run.
    """

    PANEL: ClassVar[str] = "What is read"

    files: Annotated[str | Path | Sequence[str | Path], FILES]
    _: KW_ONLY
    form: Annotated[str | None, FORM] = None
    field: Annotated[str, FIELD_OF] = FIELD
    broken: Annotated[str, IF_BROKEN] = SKIP
    limit: Annotated[int | None, LIMIT] = None
    longest: Annotated[int, LONGEST_TEXT] = LONGEST
    truncate: Annotated[bool, TRUNCATE] = False

    @property
    def places(self) -> list[str | Path]:
        """The files, also where there is one."""
        return [self.files] if isinstance(self.files, str | Path) else [*self.files]

    @property
    def read_again(self) -> tuple[str, ...] | None:
        """What is read, as words of a command; None of several files, and of what is piped in."""
        if len(self.places) != 1 or str(self.places[0]) == "-":
            return None
        how = [name for name in slots(CorpusFiles) if name != "files"]
        return (FileWord(self.places[0]), *words(self, how))


@dataclass(frozen=True, kw_only=True)
class CorpusMeasures:
    """What is measured, and the parts of speech that heads are ranked by."""

    measures: Annotated[str | Sequence[str], MEASURES] = ALL
    from_pos: Annotated[str | None, FROM_POS] = None
    to_pos: Annotated[str | None, TO_POS] = None


@dataclass(frozen=True, kw_only=True)
class CorpusRun:
    """Who measures, and where it is kept.

    `workers` None is one for each accelerator, or else for each core, and for few texts this very process, as
    0 is. The `engine` that runs them is `local`, or `ray` at `ray_address`, each of whose workers takes
    `ray_resources`. `run` is the run's folder, by default one in `outputs` that is called after what it is a
    run of.
    """

    PANEL: ClassVar[str] = "The run"
    BEYOND: ClassVar[str] = "Ray"

    workers: Annotated[int | None, WORKERS] = None
    engine: Annotated[str, ENGINE] = LOCAL
    ray_address: Annotated[str | None, RAY_ADDRESS] = None
    ray_resources: Annotated[str | None, RAY_RESOURCES] = None
    batch: Annotated[int, BATCH_OF] = BATCH
    run: Annotated[str | Path | None, RUN] = None
    rows: Annotated[str | Path | None, ROWS] = None


@dataclass(frozen=True)
class Linked:
    """The question which head links words of one part of speech to those of another."""

    source: str
    target: str


@dataclass(frozen=True)
class CorpusQuestion(CorpusFiles, CorpusMeasures, CorpusRun):
    """All of it, checked."""

    def __post_init__(self) -> None:
        numbers = {"--limit": self.limit, "--batch": self.batch, "--longest": self.longest}
        for name, value in numbers.items():
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}: it takes at least 1")
        if self.workers is not None and self.workers < 0:
            raise InputError(f"--workers is {self.workers}: it takes at least 0, this process alone")
        if (self.from_pos is None) != (self.to_pos is None):
            raise InputError("--from-pos and --to-pos go together: give both")
        if self.broken not in BROKEN:
            raise InputError(f"no --broken {self.broken}: {', '.join(BROKEN)}")
        if not self.places:
            raise InputError("give a file to read")

    @property
    def linked(self) -> Linked | None:
        """The parts of speech that are asked about."""
        if self.from_pos is None or self.to_pos is None:
            return None
        return Linked(self.from_pos, self.to_pos)
