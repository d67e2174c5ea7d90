"""A recipe that is opened only where it would give the same numbers: the same versions, the same model.

Machines of a cluster are set up one by one. A model of the same name may be another one there, and another
release of torch rounds differently; both would pass for the same run.
"""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace

from attnscope.errors import InputError
from attnscope.session.corpus.engine.interface import Measurer, Recipe
from attnscope.session.corpus.engine.machine import settings_digest, versions
from attnscope.session.listener import Quiet
from attnscope.session.opening import find_checkpoint
from attnscope.session.request import ModelRequest
from attnscope.version import __version__

_SHOWN = 19  # characters: of a hash twelve digits


@dataclass(frozen=True)
class Alike:
    """`recipe`, and what there is `here`: where it was made, and where it must be opened.

    A model that is named by a folder is looked for in the same folder: `beside` is where this process stands.
    """

    recipe: Recipe
    here: Mapping[str, str]
    beside: str

    @classmethod
    def of(cls, recipe: Recipe) -> "Alike":
        """The recipe with what there is on this machine."""
        return cls(recipe, there_is(recipe), os.getcwd())

    def on(self, device: str) -> "Alike":
        """The same for a worker that has this device."""
        return replace(self, recipe=self.recipe.on(device))

    def open(self) -> Measurer:
        """As the recipe has it; `InputError` where this machine has something else."""
        if os.path.isdir(self.beside):
            os.chdir(self.beside)
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
        weights = (checkpoint.digest.result() if whole else None) or checkpoint.source.revision
        depends_on[f"weights of {checkpoint.source.name}"] = str(weights)
        depends_on[f"settings of {checkpoint.source.name}"] = (
            f"sha256:{settings_digest(checkpoint.source.folder)}"
        )
    return depends_on


def _short(value: str | None) -> str:
    return "missing" if value is None else value if len(value) <= _SHOWN else value[:_SHOWN]
