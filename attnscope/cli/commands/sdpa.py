"""`attnscope sdpa`: attention on numbers that the user gives, step by step."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from attnscope.cli.options.arrays import Arrays
from attnscope.cli.options.delivery import Delivery
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import InputError
from attnscope.session.option import option
from attnscope.vocabulary import Scoring

if TYPE_CHECKING:
    from attnscope.results import ScaleStudy, Worked


SMALLEST = "fruit"  # the example that is worked out where nothing is given


EXAMPLE = option(
    "--example", metavar="NAME",
    help="A built-in example: dictionary, fruit, tensors, tensors-identity, tensors-sharp, theatre, "
    "why-scale.",
    brief="a built-in one: fruit, theatre, dictionary ...",
)  # fmt: skip
SCORED = option(
    "--scoring", brief_metavar="HOW",
    help="How a query is held against a key. Default: scaled-dot.",
    brief="scaled-dot, dot or additive",
)  # fmt: skip
NO_SCALE = option("--no-scale", help="Leave 1/√d_k out: --scoring dot.")
CAUSAL = option(
    "--causal", help="Query i looks at keys 0 to i only.", brief="query i looks at keys 0 to i only"
)
TABLE = option("--table", metavar="KEY=VALUE,...", help="A dictionary to look words up in exactly.")
LOOKUP = option("--lookup", metavar="KEY", help="A word to look up in the dictionary; may be repeated.")
WRONG = option(
    "--wrong", metavar="MISTAKE",
    help="Show this mistake beside the right result, with what differs and why: no-transpose, no-scale, "
    "scale-by-d, softmax-axis, no-softmax, exchanged, mask-after-softmax, mask-with-zero.",
    brief="a usual mistake beside the right result",
)  # fmt: skip
SIZE_OF_VECTORS = option(
    "--d-k", metavar="N", least=1, help="With --scores: divide them by √N, the size of their vectors."
)
MODEL_NAME = option(
    "--model", "-m", metavar="NAME",
    help="With --example theatre: a head of this model, where its queries, keys and values are made by "
    "matrices alone. Default: demo.",
)  # fmt: skip
LAYER = option("--layer", "-l", metavar="N", help="Layer for --example theatre. Default: 0.")
HEAD = option("--head", metavar="N", help="Head for --example theatre. Default: 11 of the demo, else 0.")
KIND = option(
    "--kind", metavar="encoder|decoder|cross", help="Its attention, of --example theatre. Default: cross."
)
DECIMALS = option(
    "--decimals", metavar="N", least=1, most=15,
    help="Most decimals of a number.",
    brief="most decimals of a number",
)  # fmt: skip


@dataclass(frozen=True)
class Theatre:
    """Whose head the theatre is."""

    PANEL = "The theatre"

    model: Annotated[str | None, MODEL_NAME] = None
    layer: Annotated[str | None, LAYER] = None
    head: Annotated[str | None, HEAD] = None
    kind: Annotated[str | None, KIND] = None


@dataclass(frozen=True)
class Course:
    """How the arrays are worked out."""

    PANEL = "How they are worked out"

    scoring: Annotated[Scoring | None, SCORED] = None
    no_scale: Annotated[bool, NO_SCALE] = False
    d_k: Annotated[int | None, SIZE_OF_VECTORS] = None
    causal: Annotated[bool, CAUSAL] = False
    wrong: Annotated[str | None, WRONG] = None

    @property
    def chosen(self) -> Scoring | None:
        """What --scoring and --no-scale say together, None when they say nothing."""
        if not self.no_scale:
            return self.scoring
        if self.scoring in (Scoring.SCALED_DOT, Scoring.ADDITIVE):
            raise InputError(f"--no-scale contradicts --scoring {self.scoring}: it is --scoring dot")
        return Scoring.DOT

    @property
    def own(self) -> bool:
        """Whether anything is to be worked out in another way than the example's own."""
        return self.chosen is not None or self.causal or self.d_k is not None


def sdpa(
    arrays: Arrays,
    example: Annotated[str | None, EXAMPLE] = None,
    *,
    course: Course,
    theatre: Theatre,
    table: Annotated[str | None, TABLE] = None,
    lookup: Annotated[list[str] | None, LOOKUP] = None,
    decimals: Annotated[int, DECIMALS] = 4,
    delivery: Delivery,
    output: Output,
) -> None:
    """Work attention out on numbers you give, step by step.

    Scores, weights and output, each with its shape, of arrays that are typed, in files, or built in. With
    nothing given it is the smallest example, --example fruit.
    """
    check_delivery(delivery, "Worked")
    from attnscope.render.focus import Focus

    if arrays.any + (table is not None) + (example is not None) > 1:
        raise InputError("give one of these: arrays, --table or --example")
    if theatre != Theatre() and example != "theatre":
        raise InputError("--model, --layer, --head and --kind go with --example theatre")
    if lookup and table is None and example != "dictionary":
        raise InputError("--lookup goes with --table or --example dictionary")
    if course.own and (table is not None or example == "theatre" or lookup):
        raise InputError("a dictionary and the theatre are as they are: leave out the mask and the scoring")
    if table is not None or lookup:
        result: Worked | ScaleStudy = _dictionary(table, lookup)
    elif example == "theatre":
        result = _theatre(theatre, output)
    else:
        result = _worked(arrays, example, course, output)
    if course.wrong is not None:
        result = _with_mistake(result, course.wrong)
    for warning in result.warnings:
        output.notice(warning)
    output.deliver(result, delivery, Focus(decimals=decimals))


def _theatre(theatre: Theatre, output: Output) -> "Worked":
    from attnscope.session.request import ModelRequest

    request = ModelRequest("demo" if theatre.model is None else theatre.model)  # before torch is imported
    from attnscope.session.questions.heads import work_through_theatre

    return work_through_theatre(request, theatre.layer, theatre.head, theatre.kind, output)


def _with_mistake(result: "Worked | ScaleStudy", name: str) -> "Worked":
    from attnscope.results import Worked
    from attnscope.worked import mistaken

    if not isinstance(result, Worked):
        raise InputError("--wrong goes with one example of attention, not with a study")
    return mistaken(result, name)


def _worked(arrays: Arrays, example: str | None, course: Course, output: Output) -> "Worked | ScaleStudy":
    head = arrays.stored_head()
    given, names = ({}, {}) if head is not None else arrays.read()
    if example is None and head is None and not given:
        example = SMALLEST
    if course.d_k is not None and "scores" not in given:
        raise InputError("--d-k goes with --scores: the size of other vectors is known")
    if course.chosen is not None and "scores" in given:
        raise InputError("--scores are given: leave --scoring and --no-scale out (--d-k divides them)")
    if head is not None and course.own:
        raise InputError("a head is worked out as its model did it: leave out the mask and the scoring")
    with output.working("working it out"):
        from attnscope import worked

        if head is not None:
            return worked.work_head(head)
        if example is not None:
            return worked.example(example, course.chosen, course.causal)
        beside = worked.Beside(scale=None if course.d_k is None else course.d_k**-0.5)
        scoring = course.chosen or Scoring.SCALED_DOT
        return worked.work_out(given, scoring=scoring, causal=course.causal, names=names, beside=beside)


def _dictionary(table: str | None, lookup: list[str] | None) -> "Worked":
    from attnscope.worked import TABLE, look_up

    entries = TABLE if table is None else _entries(table)
    return look_up(entries, lookup or list(entries), name="dictionary" if table is None else "")


def _entries(table: str) -> dict[str, float]:
    """`apple=9, banana=6`; `InputError` for what is no entry, and for a key that stands twice."""
    from attnscope.results.given import number

    entries: dict[str, float] = {}
    for entry in table.split(","):
        key, equals, value = (part.strip() for part in entry.rpartition("="))
        if not equals or not key:
            raise InputError(f"--table: '{entry.strip()}' is no entry such as apple=9")
        if key in entries:
            raise InputError(f"--table has two values for '{key}'")
        entries[key] = number(value, f"--table, {key}")
    return entries
