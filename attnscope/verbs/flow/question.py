"""Follow attention back to the input, beside replaced words.

Rollout, flow, rollout of what is moved, value zeroing, and back from the answer gradient x input,
integrated gradients and attention x gradient, beside what the answer (--against: its lead over
another one) loses when a token is replaced: the rank correlation of the two, that of shuffled effects,
and that of distance alone.
Of a picture patches are replaced by their mean, of a sound frames by silence, neighbours together where
there are many. From `pooled`, the vector of a whole text, it says how far that turns.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import Question, named
from attnscope.session.wanted import MEANS
from attnscope.session.which import Heads, Looked, Name, SurestTag
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.session.request import Inputs
    from attnscope.verbs.flow.result import Flow  # noqa: F401

FROM = option(
    "--from", "--query", metavar="TOKEN",
    help="The token to go back from: its text or position; a patch (r2c4), a time (0.20s); several words "
    '("the door", 4-5) are their mean; pooled is the one vector that the model makes of a text '
    "(pooled:mean, :first, :last and :pooler say how). It may be left out of a model that tags tokens: "
    "then it is the one whose tag is surest.",
    brief="the token to go back from: its text or position",
)  # fmt: skip
SEED = option("--seed", metavar="N", help="Seed of the shuffled effects.")
OF_ANSWER = option(
    "--answer", metavar="WORD",
    help="The answer that tokens are replaced for; of several tokens the probabilities are multiplied. "
    "Default: the likeliest word.",
    brief="the word that is meant; default: the likeliest",
)  # fmt: skip
AGAINST = option(
    "--against", metavar="WORD",
    help="Another word: what is measured, in every column, is how far the answer's logit lies above its.",
    brief="another word that the answer is set against",
)  # fmt: skip


@dataclass(frozen=True)
class Follow(SurestTag, Looked, Heads, Question["Flow"]):
    """What reaches `query` from every input token: rollout, flow, rollout by norm, value zeroing.

    From the answer back by gradients: gradient x input, integrated gradients and attention x gradient
    (`attributed`; an absent one says why). Beside them what replacing each input token does to the model's
    answer there, and how far the two agree; with `answer` to that one, and with `against` to its lead over
    another. Without a query a tagger is asked for the token whose tag is surest. `layers` are the first ones,
    by default all; `words` are units as `by` names them, and `special` tokens always stay.
    """

    METHODS = ("Reading.flow", "Prompted.flow")
    KIND, TAKES, WRITES, PURPOSE = "Flow", MEANS, True, Purpose.ATTENTION_AND_ANSWER
    ANSWER = "attnscope.verbs.flow.answer:flow"
    NAMES = "attnscope.verbs.flow.answer:check_query"

    query: Annotated[Name | None, FROM] = None
    _: KW_ONLY
    seed: Annotated[int, SEED] = 0
    answer: Annotated[str | None, OF_ANSWER] = None
    against: Annotated[str | None, AGAINST] = None

    @property
    def names_answer(self) -> bool:
        """Whether the answer is another one than the likeliest, or is set against one."""
        return self.answer is not None or self.against is not None

    def purpose(self, inputs: "Inputs") -> Purpose:
        """A vector is pooled without a word head, which has no pooler beside it."""
        pooled = named("attnscope.model.pooling:is_pooled")(self.query, inputs.text or "")
        if pooled and self.names_answer:
            raise InputError("a pooled vector answers nothing: leave --answer and --against out")
        return Purpose.ATTENTION if pooled else self.PURPOSE

    @property
    def over(self) -> str:
        return "from the surest tag" if self.query is None else f"from {self.query}"


FORMS = (Follow,)
