"""A worked example from top to bottom: what is given, every step with its shape, what proves it."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING
from attnscope.render.kit.numbers import counted, short
from attnscope.render.kit.words.certificate import STYLES, certificate_line
from attnscope.render.worked.arithmetic import shape_words, spelled_out
from attnscope.render.worked.grid import INDENT, grid
from attnscope.results import Provenance, Verdict
from attnscope.results.worked import Check, Mistake, Pair, Step, Worked
from attnscope.tokens import printable

WRONG = STYLES[Verdict.FAILED]


def worked(result: Worked, width: int, decimals: int = 4, verbose: bool = False) -> RenderableType:
    """Heading, steps, proofs and notes for `width` terminal cells, with up to `decimals` per number."""
    parts: list[RenderableType] = [*_heading(result)]
    for step in result.steps:
        parts += [] if step.wrong else _step(step, width, decimals)
    proofs = proof_lines(result, verbose)
    if closing := [*pair_lines(result.pairs, decimals), *proofs, *check_lines(result.checks)]:
        parts += [Text(), *closing]
    parts += _mistake(result, width, decimals)
    if result.notes:
        parts += [Text(), *(Text(printable(f"note: {note}"), style=DIM) for note in result.notes)]
    return Group(*parts)


def _step(step: Step, width: int, decimals: int) -> list[RenderableType]:
    lines = [Text(), step_line(step), *grid(step, width, decimals)]
    spelled = spelled_out(step, decimals)
    return [*lines, Text(INDENT + printable(spelled), style=DIM)] if spelled else [*lines]


def _mistake(result: Worked, width: int, decimals: int) -> list[RenderableType]:
    """The mistake that stands beside what is right: its steps, how its numbers differ, and why it is one."""
    if result.mistake is None:
        return []
    lines: list[RenderableType] = [Text(), Text(f"wrong on purpose: {result.mistake.what}", style=WRONG)]
    for step in result.steps:
        lines += _step(step, width, decimals) if step.wrong else []
    return [*lines, Text(), *(Text(told) for told in mistake_words(result.mistake))]


def mistake_words(mistake: Mistake) -> list[str]:
    """What differs, and why it is a mistake."""
    return [*(f"differs: {told}" for told in mistake.differs), f"why: {mistake.why}"]


def _heading(result: Worked) -> Iterator[Text]:
    example = f" · example {result.name}" if result.name else ""
    yield Text.assemble((result.title, HEADING), printable(example))
    yield Text(f"{result.formula} · {sizes(result)}")
    if result.provenance:
        yield Text(source(result.provenance), style=DIM)


def source(told: Provenance) -> str:
    """What pins a model's numbers down."""
    return printable(f"{told.source} · {told.device} · {told.dtype} · kernel {told.kernel} · {told.route}")


def sizes(result: Worked) -> str:
    """`1 query, 3 keys, d_k = 3, d_v = 2`, or the way of the shapes where X is projected."""
    found = {step.key: step.matrix for step in result.steps}
    if "x" in found:
        way = [found[key] for key in ("x", "q", "weights", "output", "y") if key in found]
        symbols = (f"{each.rows.symbol} x {each.columns.symbol}" for each in way)
        numbers = (f"{len(each.rows.names)} x {len(each.columns.names)}" for each in way)
        return f"{' → '.join(symbols)} = {' → '.join(numbers)}"
    given = [found[key] for key in (*"qkv", "scores") if key in found]
    if not given:
        return counted(len(result.steps[0].matrix.rows.names), "key")
    every = [axis for matrix in given for axis in (matrix.rows, matrix.columns)]
    every.sort(key=lambda axis: bool(axis.symbol))  # queries and keys first
    axes = {axis.symbol or axis.word: axis for axis in every}
    return ", ".join(
        f"{name} = {len(axis.names)}" if axis.symbol else counted(len(axis.names), name)
        for name, axis in axes.items()
    )


def step_line(step: Step) -> Text:
    """`scores = Q Kᵀ   1 x 3 (queries x keys) · how well each key fits each query`."""
    made = f" = {step.formula}" if step.formula else ""
    meaning = f" · {step.meaning}" if step.meaning else ""
    return Text.assemble(
        (step.matrix.symbol, HEADING), made, "   ", (shape_words(step), HEADING), (meaning, DIM)
    )


def pair_lines(pairs: tuple[Pair, ...], decimals: int) -> list[Text]:
    """Where some pairs of words stand among all weights."""
    names = [f"{pair.query} → {pair.key}" for pair in pairs]
    width = max(map(len, names), default=0)
    return [
        Text(f"{name:{width}}  {pair.weight:.{decimals}f}, rank {pair.rank} of {pair.pairs} weights")
        for name, pair in zip(names, pairs, strict=True)
    ]


def proof_lines(result: Worked, full: bool = False) -> list[Text]:
    """The certificates, with what the numbers were held against."""
    return [
        Text.assemble(certificate_line(certificate, full), (f" · against {against}", DIM))
        for against, certificate in result.proofs
    ]


def check_lines(checks: tuple[Check, ...]) -> list[Text]:
    """Two ways to the same numbers, and whether they met."""
    return [Text.assemble((glyph, style), f" {words}") for glyph, style, words in map(_check, checks)]


def _check(check: Check) -> tuple[str, str, str]:
    verdict = Verdict.CERTIFIED if check.passed else Verdict.FAILED
    return "✓" if check.passed else "✗", STYLES[verdict], check_words(check)


def check_words(check: Check) -> str:
    return f"{check.what}: off {short(check.difference)} (tolerated {short(check.tolerance)})"
