"""Find the heads that read what others write, from weights.

No text decides: beside them stand random circuits. Scores of Q-, K- and V-composition (Elhage et al.
2021) of every earlier with every later head; with --layer and --head of one head with all before and
after it. No text is needed: a short one that the program brings along, or noise for a model of pictures
or sounds, only serves to read the matrices back.
"""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated

from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.session.question import OfModel, named
from attnscope.session.wanted import HEADS, LAYERS, Attention, Numbers, Wanted

if TYPE_CHECKING:
    from attnscope.verbs.compose.result import Composition  # noqa: F401

MOST_DRAWS = 10_000
THROUGH = option(
    "--through", metavar="query|key|value", brief_metavar="INPUT",
    help="By which of its inputs the later head reads the earlier one. Default: all three.",
    brief="query, key or value; default: all three",
)  # fmt: skip
DRAWS = option(
    "--draws", metavar="N", help="How many random circuits each pair is held against.",
    brief="random circuits that each pair is held against",
)  # fmt: skip
SEED = option("--seed", metavar="N", help="Seed of the random circuits.")


@dataclass(frozen=True)
class Compose(Attention, OfModel["Composition"]):
    """How much of what later heads read earlier ones write, beside random circuits; no text is needed.

    Of all pairs, or of one `layer` and `head` with all before and after it; `through` the later head's
    query, key or value, by default each. `draws` random circuits of the same singular values are drawn.
    """

    METHODS = ("Model.composition",)
    KIND, ANSWER = "Composition", "attnscope.verbs.compose.answer:compose"

    layer: Annotated[Numbers, LAYERS] = None
    head: Annotated[Numbers, HEADS] = None
    _: KW_ONLY
    through: Annotated[str | None, THROUGH] = None
    draws: Annotated[int, DRAWS] = 200
    seed: Annotated[int, SEED] = 0

    def __post_init__(self) -> None:
        if (self.one.layer is None) != (self.one.head is None):
            raise InputError("--layer and --head go together: one head, or without both every pair")
        inputs = named("attnscope.verbs.compose.result:Through")
        if self.through is not None and self.through not in list(inputs):
            raise InputError(f"no '{self.through}' to compose through: {', '.join(inputs)}")
        if not 1 <= self.draws <= MOST_DRAWS:
            raise InputError(f"--draws {self.draws}: give 1 to {MOST_DRAWS}")
        super().__post_init__()

    @property
    def one(self) -> Wanted:
        """The head that is held against all others; one that names none where all are."""
        return Wanted.of(self, self.layer, self.head)

    @property
    def wanted(self) -> Wanted:
        return Wanted.of(self, None, None)


FORMS = (Compose,)
