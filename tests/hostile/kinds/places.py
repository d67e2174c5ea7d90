"""Output paths: into missing folders, onto folders and existing files, odd suffixes, long names, no room."""

from pathlib import Path
from random import Random

from .. import draw
from ..invocation import Invocation
from ..material import Material
from .sensible import MODELS, command

STEMS = (
    "made", "a b", "é", "我", "\u202e", "\udc80", "\x1b[31m", "a\nb", "-", "--json", "*", "~",
    "~nobodyatall/x", "a" * 240, "a" * 252,
    "a" * 300, ".hidden", "con", "%s", "$HOME", "[/b]", "sub/dir/made", "sub/../made", "./made",
    "folder/made", "file/made",
    "missing/../made", "a/" * 100 + "made", "locked/made", "link", "dangling", "loop", "/dev/null/made",
    "/proc/made",
    "/sys/made", "/dev/full",
)  # fmt: skip
SUFFIXES = (
    ".png",
    ".svg",
    ".pdf",
    ".npz",
    ".csv",
    ".json",
    ".PNG",
    ".Json",
    "",
    ".",
    ".bmp",
    ".png.",
    ".png ",
    ".tar.gz",
    ".html",
    ".json\u202e",
)


def file(rng: Random) -> str:
    """A path that may be anything, but is nowhere where it could do harm."""
    stem = rng.choice(STEMS)
    return (
        rng.choice(["", ".", "/", "/dev/null", "/dev/full", "/proc/self/mem", "folder"])
        if draw.chance(rng, 0.15)
        else stem + rng.choice(SUFFIXES)
    )


def furnish(here: Path, suffix: str = ".png") -> None:
    """Something at some of these places already."""
    (here / "folder").mkdir()
    (here / "locked").mkdir(mode=0o555)
    (here / "file").write_text("here first")
    (here / f"made{suffix}").write_text("the old content")
    (here / f"link{suffix}").symlink_to(f"made{suffix}")
    (here / f"dangling{suffix}").symlink_to("nowhere/at/all")
    (here / f"loop{suffix}").symlink_to(f"loop{suffix}")


def make(rng: Random, here: Path, material: Material) -> Invocation:
    argv = ["sdpa", "--example", "fruit"] if draw.chance(rng, 0.3) else command(rng)
    suffix = rng.choice(SUFFIXES[:6])
    furnish(here, suffix)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(STEMS) + suffix if draw.chance(rng, 0.7) else file(rng)
        argv += ["-o", path]
    surroundings = rng.choice(["", "", "", "homeless", "limited", "denied", "denied"])
    if surroundings == "homeless" and draw.chance(rng, 0.5):
        argv = ["report", "-m", rng.choice(MODELS)] if draw.chance(rng, 0.5) else argv[:3]
    if surroundings == "denied" and draw.chance(rng, 0.5):
        argv = [*argv[:-1], f"locked/made{suffix}"]
    return Invocation(
        tuple(argv),
        homeless=surroundings == "homeless",
        file_limit=rng.choice([2000, 4096, 20000]) if surroundings == "limited" else None,
        unprivileged=surroundings == "denied",
    )
