"""Tell why a head looks there, or why the model answers so.

A score is a sum over earlier heads, MLPs, embeddings and biases, told from the query and from the key:
each side is the whole of it. Beside the share of a part stands what becomes of the score without it, and
what becomes of it without other heads of the same layer: only what exceeds these is called a reason.
With --answer the same of an answer's logit, or of how far it lies above another one's (--against).
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from attnscope.session.option import option
from attnscope.session.question import Question
from attnscope.session.which import Name, OneHead
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.verbs.why.contributions_result import Contributions  # noqa: F401
    from attnscope.verbs.why.result import Why  # noqa: F401

FROM = option(
    "--from", "--query", metavar="TOKEN",
    help="The token that looks: its text or position, or the@5; with --answer the one that has this tag.",
    brief="the token that looks: its text, the@7, position 5",
)  # fmt: skip
TO = option(
    "--to", "--key", metavar="TOKEN", help="The token that it looks at.",
    brief="the token that is looked at, named likewise",
)  # fmt: skip
AGAINST = option(
    "--against", metavar="TOKEN|WORD",
    help="The key that --to is set against. Default: the mean of all others that may be looked at. With "
    "--answer another answer: then the difference of their logits is told.",
    brief="another key; default: the mean of all the others",
)  # fmt: skip
PATCH_FROM = option(
    "--patch-from", metavar="TEXT",
    help="Replace parts by what they are in this text, of as many tokens. Default: by their mean over "
    "the keys that --to is set against; a part of the query by its mean over the other tokens.",
    brief="parts of this text in the place of means",
)  # fmt: skip
OF_ANSWER = option(
    "--answer", metavar="WORD",
    help="In the place of a head: what each head, MLP, embedding and bias of the model brings to the "
    "logit of this answer directly, a word, a class, or a tag of the token --from.",
    brief="no head: what every part brings to this answer",
)  # fmt: skip


@dataclass(frozen=True)
class WhyLooks(OneHead, Question["Why"]):
    """Why one head looks from `query` at `key`: its score as a sum over parts of the model.

    It is told above the mean of the other keys, or above the key `against`. Beside the share of each large
    part stands what becomes of the score without it: with its mean in its place, or with what it is in the
    text `patch_from`.
    """

    METHODS = ("Reading.why", "Prompted.why")
    KIND, ANSWER = "Why", "attnscope.verbs.why.answer:why"
    NAMES = "attnscope.verbs.why.answer:check_link"

    query: Annotated[Name, FROM]
    key: Annotated[Name, TO]
    _: KW_ONLY
    against: Annotated[Name | None, AGAINST] = None
    patch_from: Annotated[str | None, PATCH_FROM] = None

    @property
    def over(self) -> str:
        return f"from {self.query} at {self.key}"

    @classmethod
    def lacking(cls, options: str) -> str:
        return f"no {options}: why takes --from TOKEN and --to TOKEN of a head, or --answer WORD"


@dataclass(frozen=True, kw_only=True)
class WhyAnswers(Question["Contributions"]):
    """Why the model gives this `answer`: its logit as a sum of what every part brings directly.

    Or how far it lies above that of another answer, `against`. Parts are replaced by their means, or by what
    they are in the text `patch_from`. Of a tagger it is the tag of the token `query`.
    """

    METHODS = ("Reading.why", "Prompted.why")
    KIND, PURPOSE = "Contributions", Purpose.ANSWER_OR_CLASS
    ANSWER = "attnscope.verbs.why.answer:why_answer"

    answer: Annotated[str, OF_ANSWER]
    query: Annotated[Name | None, FROM] = None
    against: Annotated[str | None, AGAINST] = None
    patch_from: Annotated[str | None, PATCH_FROM] = None

    @property
    def over(self) -> str:
        return f"“{self.answer}”" + ("" if self.against is None else f" and not “{self.against}”")

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return "answer" in given

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        return "why --answer is of all parts of the model: leave the head and --to out"


FORMS = (WhyAnswers, WhyLooks)
