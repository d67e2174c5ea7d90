"""What the program finds around it: variables, standard streams, places for output, Ctrl-C and SIGKILL."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line, written
from ..invocation import Invocation, Stream
from ..material import Material

WARM: dict[str, tuple[str | None, ...]] = {
    "COLUMNS": ("0", "1", "5", "39", "-1", "99999999", "nonsense", "", "１２", "1e3", "100000", "80.5", None),
    "LINES": ("0", "x"),
    "NO_COLOR": ("", "1", None),
    "FORCE_COLOR": ("1", "", "x"),
    "TERM": ("", "dumb", "nosuch", "xterm-256color", None, "\x1b[31m"),
    "COLORTERM": ("truecolor",),
    "ATTNSCOPE_MODEL": ("", " ", "demo", "no/model", "/dev/null", "\x1b[31m", "\udc80", "a" * 5000, "demo\n"),
    "PYTHONIOENCODING": ("ascii", "latin-1", "utf-8:strict", "ascii:strict", ":ignore", "cp437", "utf-7"),
    "LC_ALL": ("C", "POSIX", "nosuch", "C.UTF-8", "tr_TR.UTF-8"),
    "LANG": ("C", "", None),
    "HOME": ("", "/proc/nosuch", "/dev/null", None),
    "TMPDIR": ("/proc/nosuch", "/dev/null", ""),
    "MPLBACKEND": ("nosuch", "TkAgg", "module://nosuch", ""),
    "_ATTNSCOPE_COMPLETE": ("source_bash", "complete_bash", "nosuch", ""),
    "COMP_WORDS": ("attnscope heads --", "attnscope '", ""),
    "COMP_CWORD": ("1", "x", "-1"),
    "JPY_PARENT_PID": ("1",),
    "JUPYTER_COLUMNS": ("x",),
    "TTY_COMPATIBLE": ("1", "x"),
    "TTY_INTERACTIVE": ("1",),
    "CUDA_VISIBLE_DEVICES": ("x", "", "-1"),
}
COLD: dict[str, tuple[str | None, ...]] = {
    "HF_HUB_OFFLINE": ("nope", "0", "2", "", None),
    "HF_HUB_ETAG_TIMEOUT": ("nope", "0", "-1", "nan", "1e999", ""),
    "HF_HUB_DOWNLOAD_TIMEOUT": ("nope", "0", ""),
    "HF_HUB_VERBOSITY": ("nope", "debug", ""),
    "HF_ENDPOINT": ("nope", "http://127.0.0.1:9", "file:///etc", "", "http://\u202e"),
    "HF_HOME": ("/proc/nosuch", "/dev/null", "", "~nobodyatall/x"),
    "HF_TOKEN": ("", "\n", "é", "\x1b[31m"),
    "TRANSFORMERS_VERBOSITY": ("nope", "debug", ""),
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": ("x",),
    "OMP_NUM_THREADS": ("nope", "0", "-1", "99999", ""),
    "MPLCONFIGDIR": ("/proc/nosuch", "/dev/null", ""),
    "PYTHONWARNINGS": ("error", "always", "nope"),
    "PYTHONUTF8": ("0", "1"),
    "PYTHONOPTIMIZE": ("2",),
    "PYTHONDONTWRITEBYTECODE": ("1",),
    "PYTORCH_ENABLE_MPS_FALLBACK": ("x",),
    "TORCH_LOGS": ("nope",),
    "TORCHDYNAMO_DISABLE": ("x",),
    "TOKENIZERS_PARALLELISM": ("nope", "true"),
    "XDG_CACHE_HOME": ("/dev/null", ""),
    **{n: WARM[n] for n in ("COLUMNS", "HOME", "TMPDIR", "PYTHONIOENCODING", "TERM", "LC_ALL", "MPLBACKEND")},
}
SHORT = (
    ["--help"], ["--version"], ["heads", "--help"], ["sdpa", "--example", "fruit"], ["measures"], [],
    ["measures", "--json"], ["nosuch"], ["heads"], ["sdpa", "-"], ["heads", "-", "-m", "demo"],
    ["predict", "-", "-m", "demo"], ["heads", "--bogus"], ["model", "demo"], ["model", "demo", "--json"],
    ["sdpa", "--example", "why-scale", "-o", "made.png"], ["sdpa", "--example", "nosuch"],
    ["verify", "-", "-m", "demo-translate"], ["--show-completion"],
)  # fmt: skip


def environments(rng: Random, here: Path, material: Material) -> Invocation:
    """Variables that the program and its libraries read."""
    cold = draw.chance(rng, 0.25)
    table = COLD if cold else WARM
    chosen = {name: rng.choice(table[name]) for name in rng.sample(list(table), rng.choice([1, 1, 2, 3]))}
    plain = (["heads", "Hello, world"], ["sdpa", "--example", "fruit"], ["--help"], ["model"])
    argv = line(rng, here, material) if draw.chance(rng, 0.4) else list(rng.choice(plain))
    if cold and draw.chance(rng, 0.2):
        for name in ("json", "numpy", "torch"):  # a program must not import from where it stands
            (here / f"{name}.py").write_text("open('imported-from-here', 'w').close()\n")
    return Invocation(tuple(argv), environment=chosen, cold=cold)


def streams(rng: Random, here: Path, material: Material) -> Invocation:
    """Standard streams that are closed, full, broken or no text."""
    if draw.chance(rng, 0.5):
        argv = list(rng.choice(SHORT))
    else:
        argv = line(rng, here, material)
        argv += written(rng) if draw.chance(rng, 0.3) else []
    out = rng.choice([Stream.KEPT, Stream.CLOSED, Stream.FULL, Stream.BROKEN])
    err = rng.choice([Stream.KEPT, Stream.KEPT, Stream.CLOSED, Stream.FULL, Stream.BROKEN])
    given = (b"", b"a text", b"\xff\xfe\x00", rng.randbytes(30) * 100, b'{"q": [[1]]}')
    typed = rng.choice([Stream.CLOSED, Stream.WRITABLE, *given])
    return Invocation(tuple(argv), stdin=typed, stdout=out, stderr=err, cold=draw.chance(rng, 0.1))


def places(rng: Random, here: Path, material: Material) -> Invocation:
    """Output into missing folders, onto folders and existing files, odd suffixes, long names, no room."""
    argv = ["sdpa", "--example", "fruit"] if draw.chance(rng, 0.3) else line(rng, here, material)
    suffix = rng.choice(draw.SUFFIXES[:6])
    _furnish(here, suffix)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(draw.STEMS) + suffix if draw.chance(rng, 0.7) else draw.path(rng)
        argv += ["-o", path]
    surroundings = rng.choice(["", "", "", "homeless", "limited", "denied", "denied"])
    if surroundings == "homeless" and draw.chance(rng, 0.5):
        argv = ["report", "-m", "demo-causal"] if draw.chance(rng, 0.5) else argv[:3]
    if surroundings == "denied" and draw.chance(rng, 0.5):
        argv = [*argv[:-1], f"locked/made{suffix}"]
    return Invocation(
        tuple(argv),
        homeless=surroundings == "homeless",
        file_limit=rng.choice([2000, 4096, 20000]) if surroundings == "limited" else None,
        unprivileged=surroundings == "denied",
    )


def _furnish(here: Path, suffix: str) -> None:
    """Something at some of these places already."""
    (here / "folder").mkdir()
    (here / "locked").mkdir(mode=0o555)
    (here / "file").write_text("here first")
    (here / f"made{suffix}").write_text("the old content")
    (here / f"link{suffix}").symlink_to(f"made{suffix}")
    (here / f"dangling{suffix}").symlink_to("nowhere/at/all")
    (here / f"loop{suffix}").symlink_to(f"loop{suffix}")


def interrupts(rng: Random, here: Path, material: Material) -> Invocation:
    """Ctrl-C at any moment, half of them in the first second, in a warm process or one that has to start."""
    argv, cold = _asked(rng, here, material), draw.chance(rng, 0.5)
    return Invocation(argv, interrupt=_moment(rng, cold), cold=cold)


def kills(rng: Random, here: Path, material: Material) -> Invocation:
    """Ended at any moment without being asked: no half a file by its name, and it can be asked again.

    Hashes of large files are remembered, so that what was being written is found by whoever asks again.
    """
    argv, cold = _asked(rng, here, material), draw.chance(rng, 0.5)
    return Invocation(argv, environment={"ATTNSCOPE_DIGESTS": None}, kill=_moment(rng, cold), cold=cold)


def _asked(rng: Random, here: Path, material: Material) -> tuple[str, ...]:
    """A command that does its work, half of the time into a file."""
    return (*line(rng, here, material), *(written(rng) if draw.chance(rng, 0.5) else []))


def _moment(rng: Random, cold: bool) -> float:
    """Seconds after the start."""
    later = rng.uniform(1, 8 if cold else 3)
    return round(rng.uniform(0.1, 1) if draw.chance(rng, 0.5) else later, 3)
