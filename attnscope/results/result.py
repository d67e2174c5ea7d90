"""The kinds of results, and their names in files.

How a result is stored follows from its fields.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from attnscope.register import kind_of, kinds, there
from attnscope.results.base.presented import Presented
from attnscope.results.claims.prompts import Prompts
from attnscope.results.heads import HeadAttention, HeadView, HeadWeights
from attnscope.results.long import LongHead
from attnscope.results.media import PictureAttention, PictureHeads, SoundAttention, SoundHeads
from attnscope.results.overview import Overview, Thumbnails
from attnscope.results.prediction import Prediction
from attnscope.results.projection import Projection
from attnscope.results.score import Dimensions, HeadTerms

Result: TypeAlias = Presented

_OWN: dict[str, type[Result]] = {
    "dimensions": Dimensions,
    "head": HeadWeights,  # and `HeadAttention`, which has all that is known of a head
    "long": LongHead,
    "overview": Overview,
    "picture": PictureAttention,
    "picture-heads": PictureHeads,
    "prediction": Prediction,
    "projection": Projection,
    "prompts": Prompts,
    "sound": SoundAttention,
    "sound-heads": SoundHeads,
    "terms": HeadTerms,
    "thumbnails": Thumbnails,
    "view": HeadView,
}
_NAMES = {kind: name for name, kind in _OWN.items()} | {HeadAttention: "head"}


class Kinds(Mapping[str, type[Result]]):
    """Mapping from a file name of a kind to its class; classes of verbs are imported on access."""

    def __getitem__(self, name: str) -> type[Result]:
        if name in _OWN:
            return _OWN[name]
        found: type[Result] = there(kinds()[name].result)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*_OWN, *kinds()}))

    def __len__(self) -> int:
        return len({*_OWN, *kinds()})


KINDS = Kinds()


def name_of(kind: type[Result]) -> str:
    """The name of a result class in files."""
    of_verb = kind_of(kind)
    return _NAMES[kind] if of_verb is None else of_verb.name
