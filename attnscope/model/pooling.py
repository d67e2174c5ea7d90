"""How a model makes one vector of a text: the mean of its tokens' last vectors, one of them, or its pooler.

What sentence-transformers has written beside a checkpoint counts first (`modules.json`), then a pooler of the
model's own. A checkpoint may hold a pooler that nobody uses: a reader is told which of them was taken.
"""

from enum import StrEnum
from typing import Any

import numpy as np
from jaxtyping import Float

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.model.loaded import Model

_WORD = "pooled"
_WRITTEN = {"mean_tokens": "mean", "cls_token": "first", "lasttoken": "last"}


class Pooling(StrEnum):
    """What the pooled vector is made of."""

    MEAN = "mean"
    FIRST = "first"
    LAST = "last"
    POOLER = "pooler"

    @property
    def said(self) -> str:
        """`the mean of its tokens' last vectors`."""
        return {
            Pooling.MEAN: "the mean of the last vectors of all its tokens",
            Pooling.FIRST: "the last vector of its first token",
            Pooling.LAST: "the last vector of its last token",
            Pooling.POOLER: "what the model's own pooler makes of the first token's last vector",
        }[self]

    def weights(self, count: int) -> Float[np.ndarray, " token"]:
        """How much of each of so many tokens' last vectors is in it; of a pooler that of what it reads."""
        found = np.zeros(count)
        if self is Pooling.MEAN:
            return np.full(count, 1 / count)
        found[-1 if self is Pooling.LAST else 0] = 1.0
        return found


def is_pooled(name: str | int, text: str = "") -> bool:
    """Whether the pooled vector is meant, and no word of the text: `pooled`, `pooled:mean`."""
    if not isinstance(name, str):
        return False
    word, colon, _ = name.casefold().partition(":")
    return word == _WORD and (bool(colon) or _WORD not in text.casefold())


def named_pooling(name: str) -> Pooling | None:
    """How it is pooled, where that is said: `pooled:mean`; None for `pooled` alone."""
    _, colon, how = name.casefold().partition(":")
    if not colon:
        return None
    if how not in list(Pooling):
        raise InputError(f"no pooling '{how}': {', '.join(f'{_WORD}:{each}' for each in Pooling)}")
    return Pooling(how)


def pooling_of(model: Model) -> Pooling:
    """How the model itself pools; `InputError` where it does not."""
    others = (
        f"name how, --from {', '.join(f'{_WORD}:{each}' for each in Pooling if each is not Pooling.POOLER)}"
    )
    written = _written(model)
    if written is not None and written not in _WRITTEN:
        raise InputError(f"{model.name} pools by {written}, which is no sum of vectors here: {others}")
    if written is not None:
        return Pooling(_WRITTEN[written])
    if pooler_of(model) is not None:
        return Pooling.POOLER
    raise InputError(f"{model.name} makes no one vector of a text: {others}")


def pooler_of(model: Model) -> Any:
    """The model's own pooler; None without one."""
    return getattr(getattr(model.module, "base_model", model.module), "pooler", None)


def _written(model: Model) -> str | None:
    """The pooling modes in the config beside the checkpoint, as sentence-transformers has it, or None."""
    if model.checkpoint is None:
        return None
    here = model.checkpoint.source.folder  # or, as sentence-transformers had it, a folder of its own beside
    folder = next((each for each in (here, here.parent) if (each / "modules.json").is_file()), None)
    if folder is None:
        return None
    try:
        every = incoming.settings(folder / "modules.json")
        if folder != here and here.name not in [each["path"] for each in every]:
            return None
        place = next(each["path"] for each in every if "Pooling" in each["type"])
        said = incoming.settings(folder / place / "config.json")
        on = [name.removeprefix("pooling_mode_") for name, mode in said.items() if mode is True]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        return None
    modes = [name for name in on if name in _WRITTEN or name.endswith(("_tokens", "token"))]
    return " and ".join(modes) or None


__all__ = ["Pooling", "is_pooled", "named_pooling", "pooler_of", "pooling_of"]
