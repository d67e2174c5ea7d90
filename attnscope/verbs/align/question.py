"""Link words with their translation, or time what is said.

By the cross-attention of a translator, a summariser or a recogniser of speech. Heads count alike where
they are given (--head L1H0,L2H5) or named by the model's own settings, else by how sharp and monotone
they are, or by what is learnt on gold; then each link has the chance that it is right. Words are linked
as seen from both sides; those of a sound are timed by dynamic time warping. Without --target it is what
the model writes itself.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import Question
from attnscope.session.wanted import CROSS
from attnscope.session.which import Heads
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.session.request import Inputs
    from attnscope.verbs.align.result import Alignment, Timing  # noqa: F401

GOLD = option(
    "--gold", metavar="FILE",
    help="What is right: links of this pair (0-0 1-2 2?1: source-target from 0, ? is possible), or of "
    "other pairs, one a line: source ||| target ||| links, words between blanks. Of a sound word, begin "
    "and end, parted by tabs, a word a line; of others the sound's file before them.",
    brief="what is right, to score by",
)  # fmt: skip
LEARN = option(
    "--learn", metavar="FILE",
    help="Learn on such pairs or sounds how much each head counts, and how sure an answer is; each fifth "
    "of them is judged by the others.",
    brief="gold to learn heads and sureness on",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Align(Heads, Question["Alignment | Timing"]):
    """Which word of the source each word of the target stands for; of a sound when each word is heard.

    By the cross-attention of all heads. `gold` and `learn` are files as the command takes them: what the
    answer is held against, and what heads and their sureness are learnt on.
    """

    METHODS = ("Reading.align",)
    KIND, ANSWER = "Alignment", "attnscope.verbs.align.word_times:aligned"
    TAKES, PURPOSE = CROSS, Purpose.ATTENTION_AND_ANSWER

    gold: Annotated[str | Path | None, GOLD] = None
    learn: Annotated[str | Path | None, LEARN] = None

    def __post_init__(self) -> None:
        for file in (self.gold, self.learn):
            incoming.check_there(file, "gold")
        super().__post_init__()

    def reads(self, inputs: "Inputs") -> "tuple[Align, Inputs]":
        if inputs.image is not None:
            raise InputError("align takes a text or a sound: attnscope heads --image looks at a picture")
        return (AlignSound(**vars(self)) if inputs.sensed else self), inputs


class AlignSound(Align):
    """When each word of a sound is heard."""

    KIND = "Timing"


FORMS = (Align,)
