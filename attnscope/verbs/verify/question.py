"""Certify every layer and head of a model, and its results.

The final hidden states and logits are held against a run that was not touched. Exit code 5 when
a certificate fails or a result changes while the model is watched.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from attnscope.session.option import option
from attnscope.session.question import Question
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.verbs.verify.result import Verification  # noqa: F401

EVERY_TOKEN = option(
    "--every-token",
    help="Try the place of each token, however long the text, and each row of a block by itself. "
    "Otherwise samples are tried: of a text of more than 252 tokens, and of every block a half.",
    brief="try the place of each token, not of samples",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Verify(Question["Verification"]):
    """Every layer and head certified, and the model's results held against an untouched run.

    With `every_token` the place of each token is tried, however long the text, and each row of a block.
    """

    METHODS = ("Reading.verify",)
    KIND, ANSWER = "Verification", "attnscope.verbs.verify.answer:verify_reading"
    PURPOSE, ARTICLE, OF_THIS_MODEL = Purpose.EVERYTHING, True, True

    every_token: Annotated[bool, EVERY_TOKEN] = False


FORMS = (Verify,)
