"""Output paths: into missing folders, onto folders and existing files, odd suffixes, long names, no room."""

from pathlib import Path
from random import Random

from .. import draw
from ..commands import line
from ..invocation import Invocation
from ..material import Material


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
    argv = ["sdpa", "--example", "fruit"] if draw.chance(rng, 0.3) else line(rng, here, material)
    suffix = rng.choice(draw.SUFFIXES[:6])
    furnish(here, suffix)
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
