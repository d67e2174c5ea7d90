"""Environment variables that the program and its libraries read."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line
from ..invocation import Invocation
from ..material import Material

WARM: dict[str, tuple[str | None, ...]] = {
    "COLUMNS": ("0", "1", "5", "39", "-1", "99999999", "nonsense", "", "１２", "1e3", "100000", "80.5", None),
    "LINES": ("0", "x"),
    "NO_COLOR": ("", "1", None),
    "FORCE_COLOR": ("1", "", "x"),
    "TERM": ("", "dumb", "nosuch", "xterm-256color", None, "\x1b[31m"),
    "COLORTERM": ("truecolor",),
    "ATTNSCOPE_MODEL": (
        "",
        " ",
        "demo",
        "no/model",
        "~nobodyatall/x",
        "/dev/null",
        "\x1b[31m",
        "\u202e",
        "\udc80",
        "a" * 5000,
        "demo\n",
    ),
    "PYTHONIOENCODING": (
        "ascii",
        "latin-1",
        "utf-8:strict",
        "ascii:strict",
        ":ignore",
        "cp437",
        "utf-7",
    ),
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
    "MPLBACKEND": ("nosuch",),
    "PYTHONWARNINGS": ("error", "always", "nope"),
    "PYTHONUTF8": ("0", "1"),
    "PYTHONOPTIMIZE": ("2",),
    "PYTHONDONTWRITEBYTECODE": ("1",),
    "PYTORCH_ENABLE_MPS_FALLBACK": ("x",),
    "TORCH_LOGS": ("nope",),
    "TORCHDYNAMO_DISABLE": ("x",),
    "TOKENIZERS_PARALLELISM": ("nope", "true"),
    "XDG_CACHE_HOME": ("/dev/null", ""),
    "LC_ALL": ("C", "POSIX", "nosuch"),
    **{name: WARM[name] for name in ("COLUMNS", "HOME", "TMPDIR", "PYTHONIOENCODING", "TERM")},
}


def make(rng: Random, here: Path, material: Material) -> Invocation:
    cold = draw.chance(rng, 0.25)
    table = COLD if cold else WARM
    chosen = {name: rng.choice(table[name]) for name in rng.sample(list(table), rng.choice([1, 1, 2, 3]))}
    plain = (["heads", "Hello, world"], ["sdpa", "--example", "fruit"], ["--help"], ["model"])
    argv = line(rng, here, material) if draw.chance(rng, 0.4) else list(rng.choice(plain))
    if cold and draw.chance(rng, 0.2):
        for name in ("json", "numpy", "torch"):  # a program must not import from where it stands
            (here / f"{name}.py").write_text("open('imported-from-here', 'w').close()\n")
    return Invocation(tuple(argv), environment=chosen, cold=cold)
