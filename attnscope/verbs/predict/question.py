"""Show what the model itself answers.

What it makes of a text, a picture or a sound. A masked model fills each [MASK], and says with --pair
whether the second text follows; a causal model goes on by one token; an encoder-decoder writes; a
classifier names the class, a tagger the tag of each token, and of a question the answer is found in the
text of --pair. With --answer it says how likely that answer is. With --layers each layer's state takes
the place of the last one's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import Question, R_co, named
from attnscope.session.selection import check_controls
from attnscope.vocabulary import Purpose

if TYPE_CHECKING:
    from attnscope.results import Prediction  # noqa: F401
    from attnscope.session.opening import Opened
    from attnscope.verbs.predict.result import LayeredPrediction  # noqa: F401

TOP = option(
    "--top", "-k", metavar="N", least=1,
    help="How many words or classes to show. Default: 5.", brief="how many words or classes to show",
)  # fmt: skip
MEANT = option(
    "--answer", metavar="WORDS",
    help="How likely this answer is; of several tokens each is given those before it, and their "
    "probabilities are multiplied.",
    brief="how likely this answer is",
)  # fmt: skip
LAYERS = option(
    "--layers", usual=False,
    help="What each layer would answer if it were the last (logit lens), beside texts with the words in "
    "other orders.",
    brief="what each layer would answer if it were the last",
)  # fmt: skip
CONTROLS = option(
    "--controls", metavar="N", least=0, usual=None,
    help="How many shuffled texts --layers reads. Default: 20.",
)  # fmt: skip
SEED = option("--seed", metavar="N", usual=None, help="Seed of these shuffled texts. Default: 0.")


class OfTheModel(Question[R_co]):
    """What the model answers, which is counted over many texts where it is one probability."""

    PURPOSE = Purpose.ANSWER_OR_CLASS

    def apart(self, opened: "Opened") -> bool:
        return bool(named("attnscope.session.questions.answers:has_no_one_chance")(opened))


@dataclass(frozen=True)
class Predict(OfTheModel["Prediction"]):
    """What the model itself makes of what it read: masks filled, the next token, a text, a verdict.

    The `top` ones are told, by default 5, each with its probability, 0 to 1. Of an `answer` that is named how
    likely it is; several tokens are multiplied.
    """

    METHODS = ("Reading.predict", "Prompted.predict")
    KIND, ANSWER = "Prediction", "attnscope.verbs.predict.answer:predict"

    top: Annotated[int | None, TOP] = None
    answer: Annotated[str | None, MEANT] = None

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise InputError(f"--top {self.top}: it is how many answers are shown, 1 or more")
        if self.top is not None and self.answer is not None:
            raise InputError("--top is how many answers are shown: --answer is one")

    @property
    def over(self) -> str:
        if self.answer is not None:
            raise InputError(
                "--texts sets each prompt's own answer beside the other prompts: leave --answer out, or ask "
                "about one text (ablate and flow take --texts with --answer)"
            )
        return "what the model answers"

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        return f"{options[0]} is about shuffled texts: it goes with --layers"


@dataclass(frozen=True)
class PredictLayers(OfTheModel["LayeredPrediction"]):
    """What each layer would answer if it were the last, beside `controls` texts of other orders of words.

    `InputError` where there is no single place or class to ask about, or the head reads more than the last
    layer (logit lens, nostalgebraist 2020).
    """

    METHODS = ("Reading.predict_layers", "Prompted.predict_layers")
    KIND, ANSWER = "LayeredPrediction", "attnscope.verbs.predict.answer:predict_layers"

    layers: Annotated[bool, LAYERS] = field(default=True, init=False)
    controls: Annotated[int, CONTROLS] = 20
    seed: Annotated[int, SEED] = 0

    def __post_init__(self) -> None:
        check_controls(self.controls, least=0)
        super().__post_init__()

    @property
    def over(self) -> str:
        return "what each layer would answer"

    @classmethod
    def meant_by(cls, given: Mapping[str, Any]) -> bool:
        return "layers" in given

    @classmethod
    def refused(cls, options: Sequence[str]) -> str:
        if "--answer" in options:
            return "--layers shows the likeliest answer of each layer: leave --answer out"
        return "--top is how many answers are shown: --layers shows the first of each layer"


FORMS = (PredictLayers, Predict)
