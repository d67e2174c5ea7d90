"""What every machine of a cluster must have and see: versions and model, the run's folder, the texts.

Machines are set up one by one. A model of the same name may be another one there, another release of torch
rounds differently, and a file of the same name may hold other texts: all would pass for the same run.
"""

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import Measurer, Recipe
from attnscope.session.corpus.engine.machine import settings_digest, versions
from attnscope.session.corpus.store import Place
from attnscope.session.listener import Quiet
from attnscope.session.opening import find_checkpoint
from attnscope.session.request import ModelRequest
from attnscope.version import __version__

_SHOWN = 19  # characters: of a hash twelve digits
_SAMPLES, _SAMPLE = 16, 4096  # how many pieces of a file are looked at, and of how many bytes
_SEEN = "seen-"


@dataclass(frozen=True)
class CheckedRecipe:
    """A recipe that is opened only where it would give the same numbers; `here` is what there is at home."""

    recipe: Recipe
    here: Mapping[str, str]

    @classmethod
    def of(cls, recipe: Recipe) -> "CheckedRecipe":
        """The recipe with what there is on this machine."""
        return cls(recipe, there_is(recipe))

    @property
    def into(self) -> str:
        """That of the recipe."""
        return self.recipe.into

    def on(self, device: str) -> "CheckedRecipe":
        """The recipe for a worker that has this device."""
        return replace(self, recipe=self.recipe.on(device))

    def open(self) -> Measurer:
        """As the recipe has it; `InputError` where this machine has something else."""
        there = there_is(self.recipe)
        for name, value in self.here.items():
            if there.get(name) != value:
                differs = f"{_short(there.get(name))} on {platform.node()}, {_short(value)} here"
                raise InputError(f"{name}: {differs}: every machine of the cluster needs the same")
        return self.recipe.open()


def there_is(recipe: Recipe) -> dict[str, str]:
    """What numbers depend on, by name: the versions, and the hashes of the files that would be read."""
    depends_on = {"attnscope": __version__, **versions()}
    request = getattr(recipe, "request", None)
    if isinstance(request, ModelRequest):
        checkpoint = find_checkpoint(request, Quiet())
        whole = len(checkpoint.there) == len(checkpoint.files)
        weights = checkpoint.told_apart if whole else checkpoint.source.revision
        depends_on[f"weights of {checkpoint.source.name}"] = str(weights)
        depends_on[f"settings of {checkpoint.source.name}"] = f"sha256:{settings_digest(checkpoint)}"
    return depends_on


def _short(value: str | None) -> str:
    return "missing" if value is None else value if len(value) <= _SHOWN else value[:_SHOWN]


def glance(place: Place) -> str:
    """What tells a file from others of its name, without reading it all; of a store what that says itself."""
    if (local := place.local) is None:
        return place.signature()
    size, digest = local.stat().st_size, hashlib.sha256()
    with local.open("rb") as file:
        for i in range(_SAMPLES):
            file.seek(max(0, size - _SAMPLE) * i // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE))
    return f"{size} bytes, {digest.hexdigest()[:12]}"


def check_sees(run: Place) -> None:
    """Raises `InputError` where there is no such folder here: on a node that came when all were asked."""
    if not run.is_folder():
        raise InputError(f"{platform.node()} does not see the run's folder '{run}': {_SHARED}")


def check_same_texts(glances: Mapping[Place, str]) -> None:
    """Raises `InputError` where a file is not here, or not the one at which the command looked."""
    for place, seen in glances.items():
        try:
            other = glance(place)
        except FileNotFoundError as error:
            raise InputError(f"{platform.node()} does not see '{place}': {_SHARED}") from error
        if other != seen:
            raise InputError(f"'{place}' is another file on {platform.node()} ({other}, not {seen})")


_SHARED = (
    "texts and --run must lie where every machine of the cluster sees them, as s3://... or a shared folder"
)


def check_seen_by_all(ray: Any, run: Place, nodes: Sequence[Mapping[str, Any]]) -> None:
    """Writes into the run's folder, has each node read that and write too; `InputError` where one cannot."""
    there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    token = token_hex(8)
    given = run / f"{_SEEN}{token}"
    left = [given]
    try:
        given.write(token.encode())
        asked = ray.remote(num_cpus=0, max_retries=3)(write_seen)
        answers = []
        for number, node in enumerate(nodes):
            left.append(run / f"{given.name}-{number}")
            answers.append(
                asked.options(scheduling_strategy=there(node["NodeID"], soft=False)).remote(
                    given, left[-1], token
                )
            )
        for node, place, answer in zip(nodes, left[1:], answers, strict=True):
            name = f"{node['NodeManagerHostname']} ({node['NodeID'][:6]})"
            try:
                why = ray.get(answer)
            except ray.exceptions.RayError:
                continue  # it was lost just now; one that comes in its place looks for itself
            if why is None and not _holds(place, token):
                why = "what it writes there is not seen here"
            if why is not None:
                raise InputError(f"{name} does not see the run's folder '{run}': {why}; {_SHARED}")
    finally:
        for place in left:
            with suppress(InputError, OSError):
                place.remove()


def write_seen(given: Place, own: Place, token: str) -> str | None:
    """On a node: read what was written there, write beside it; why not, where that is not so."""
    try:
        if not _holds(given, token):
            return "what was written there is not found"
        own.write(token.encode())
    except (OSError, InputError) as error:
        return str(error)
    return None


def _holds(place: Place, token: str) -> bool:
    try:
        return place.read() == token.encode()
    except FileNotFoundError:
        return False


def absolute(place: Place) -> Place:
    """The place by a path that holds wherever a process stands."""
    return place if place.local is None else Place(os.path.abspath(place.local), place.options)


def stand_at(folder: str) -> None:
    """From now on names are looked for from there, where there is such a folder."""
    if Path(folder).is_dir():
        os.chdir(folder)
