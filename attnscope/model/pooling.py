"""How a model pools token vectors into one text vector: their mean, the first, the last, or a pooler.

The sentence-transformers config beside a checkpoint (`modules.json`) counts first, then the model's own
pooler. A checkpoint may hold a pooler that nobody uses: a reader is told which of them was taken.
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
    """The way token vectors become one text vector."""

    MEAN = "mean"
    FIRST = "first"
    LAST = "last"
    POOLER = "pooler"

    @property
    def said(self) -> str:
        """Description in words: `the mean of the last vectors of all its tokens`."""
        return {
            Pooling.MEAN: "the mean of the last vectors of all its tokens",
            Pooling.FIRST: "the last vector of its first token",
            Pooling.LAST: "the last vector of its last token",
            Pooling.POOLER: "what the model's own pooler makes of the first token's last vector",
        }[self]

    def weights(self, count: int) -> Float[np.ndarray, " token"]:
        """Weight of each of `count` token vectors in the text vector; a pooler reads the first alone."""
        found = np.zeros(count)
        if self is Pooling.MEAN:
            return np.full(count, 1 / count)
        found[-1 if self is Pooling.LAST else 0] = 1.0
        return found


def is_pooled(name: str | int, text: str = "") -> bool:
    """True where a name means the pooled vector, `pooled:mean` or `pooled`, and no word of the text."""
    if not isinstance(name, str):
        return False
    word, colon, _ = name.casefold().partition(":")
    return word == _WORD and (bool(colon) or _WORD not in text.casefold())


def named_pooling(name: str) -> Pooling | None:
    """The pooling that `pooled:mean` names; None for `pooled` alone, `InputError` for an unknown one."""
    _, colon, how = name.casefold().partition(":")
    if not colon:
        return None
    if how not in list(Pooling):
        raise InputError(f"no pooling '{how}': {', '.join(f'{_WORD}:{each}' for each in Pooling)}")
    return Pooling(how)


def pooling_of(model: Model) -> Pooling:
    """The model's own pooling; `InputError` where it has none."""
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
    """The model's own pooler module; None without one."""
    return getattr(getattr(model.module, "base_model", model.module), "pooler", None)


def _written(model: Model) -> str | None:
    """The pooling modes in the sentence-transformers config beside the checkpoint, or None."""
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
