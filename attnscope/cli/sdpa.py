"""`attnscope sdpa`: attention on numbers that the user gives, step by step."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from attnscope.cli.arrays.options import Arrays
from attnscope.cli.arrays.typed import number
from attnscope.cli.groups import Delivery
from attnscope.cli.output import Output, check_delivery
from attnscope.errors import InputError

if TYPE_CHECKING:
    from attnscope.results import ScaleStudy, Worked


class Scoring(StrEnum):
    """How a query is held against a key."""

    SCALED_DOT = "scaled-dot"
    DOT = "dot"
    ADDITIVE = "additive"


Example = Annotated[
    str | None,
    typer.Option(
        "--example",
        metavar="NAME",
        help="A built-in example: dictionary, fruit, tensors, tensors-identity, tensors-sharp, theatre, "
        "why-scale.",
    ),
]
Scored = Annotated[
    Scoring | None, typer.Option("--scoring", help="How a query is held against a key. Default: scaled-dot.")
]
NoScale = Annotated[
    bool, typer.Option("--no-scale", help="Leave 1/√d_k out: --scoring dot.", show_default=False)
]
Causal = Annotated[
    bool, typer.Option("--causal", help="Query i looks at keys 0 to i only.", show_default=False)
]
Table = Annotated[
    str | None,
    typer.Option("--table", metavar="KEY=VALUE,...", help="A dictionary to look words up in exactly."),
]
Lookup = Annotated[
    list[str] | None,
    typer.Option("--lookup", metavar="KEY", help="A word to look up in the dictionary; may be repeated."),
]
Head = Annotated[
    str | None,
    typer.Option("--head", metavar="N", help="Head of layer 0 for --example theatre. Default: 11."),
]
Decimals = Annotated[
    int, typer.Option("--decimals", metavar="N", min=1, max=15, help="Most decimals of a number.")
]


def sdpa(
    arrays: Arrays,
    example: Example = None,
    scoring: Scored = None,
    no_scale: NoScale = False,
    causal: Causal = False,
    table: Table = None,
    lookup: Lookup = None,
    head: Head = None,
    decimals: Decimals = 4,
    *,
    delivery: Delivery,
    output: Output,
) -> None:
    """Work attention out on numbers you give, every step with its shape.

    attnscope sdpa --q "1,0,1" --k "1,0,1; 0,1,0; 1,1,0" --v "1,2; 3,4; 5,6"
    """
    check_delivery(delivery, "Worked")
    from attnscope.render.focus import Focus
    from attnscope.session.questions.worked import work_through_theatre

    chosen = _scoring(scoring, no_scale)
    if arrays.any + (table is not None) + (example is not None) > 1:
        raise InputError("give one of these: arrays, --table or --example")
    if head is not None and example != "theatre":
        raise InputError("--head goes with --example theatre")
    if lookup and table is None and example != "dictionary":
        raise InputError("--lookup goes with --table or --example dictionary")
    if (chosen or causal) and (table is not None or example == "theatre" or lookup):
        raise InputError("a dictionary and the theatre are as they are: leave out the mask and the scoring")
    if table is not None or lookup:
        result: Worked | ScaleStudy = _dictionary(table, lookup)
    elif example == "theatre":
        result = work_through_theatre(head, output)
    else:
        result = _worked(arrays, example, chosen, causal, output)
    for warning in result.warnings:
        output.notice(warning)
    output.deliver(result, delivery, Focus(decimals=decimals))


def _scoring(scoring: Scoring | None, no_scale: bool) -> Scoring | None:
    """What --scoring and --no-scale say together, None when they say nothing."""
    if not no_scale:
        return scoring
    if scoring in (Scoring.SCALED_DOT, Scoring.ADDITIVE):
        raise InputError(f"--no-scale contradicts --scoring {scoring}: it is --scoring dot")
    return Scoring.DOT


def _worked(
    arrays: Arrays, example: str | None, scoring: Scoring | None, causal: bool, output: Output
) -> "Worked | ScaleStudy":
    """A built-in example, or what the user gave, worked out."""
    given, names = arrays.read()
    if example is None and not given:
        raise InputError(
            "nothing to work out: give --q, --k and --v (or --x, --wq, --wk and --wv), a file, --table, or "
            "--example NAME, for instance --example fruit"
        )
    with output.working("working it out"):
        from attnscope import worked
        from attnscope.results.worked import Scoring as Score

        score = None if scoring is None else Score(scoring)
        if example is not None:
            return worked.example(example, score, causal)
        return worked.work_out(given, scoring=score or Score.SCALED_DOT, causal=causal, names=names)


def _dictionary(table: str | None, lookup: list[str] | None) -> "Worked":
    """The words to look up, by default every key; without a table in the example's."""
    from attnscope.worked import TABLE, look_up

    entries = TABLE if table is None else _entries(table)
    return look_up(entries, lookup or list(entries), name="dictionary" if table is None else "")


def _entries(table: str) -> dict[str, float]:
    """`apple=9, banana=6`; `InputError` for what is no entry, and for a key that stands twice."""
    entries: dict[str, float] = {}
    for entry in table.split(","):
        key, equals, value = (part.strip() for part in entry.rpartition("="))
        if not equals or not key:
            raise InputError(f"--table: '{entry.strip()}' is no entry such as apple=9")
        if key in entries:
            raise InputError(f"--table has two values for '{key}'")
        entries[key] = number(value, f"--table, {key}")
    return entries
