"""The words of every verb as words: plain and short, each case and each part of a table shown by an example.

`cases_VERB.py` among the specimens has the examples of the table `VERB.jinja`. Rows,
numbers, marks, scales and commands of their sheets, and columns of their files, stand in `golden/sheets`.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from golden_text import assert_golden
from jinja2 import StrictUndefined, meta, nodes
from jinja2.runtime import Undefined

from attnscope.register import registered
from attnscope.render import words
from attnscope.render.sheet.sheet import Sheet
from attnscope.render.sheet.table import Column, Table
from attnscope.render.sheets import Focus, sheet_of
from attnscope.tokens import Tokens

SPECIMENS = Path(__file__).parents[1] / "specimens"
FOLDERS = [Path(words.__file__).parent, *(verb.folder for verb in registered().values())]
TABLES = {each.stem: each for folder in FOLDERS for each in folder.glob("*.jinja")}
PACKAGE = FOLDERS[0].parents[1]
VERBS = {each.stem.removeprefix("cases_"): import_module(each.stem) for each in SPECIMENS.glob("cases_*.py")}
OF_EACH = pytest.mark.parametrize("verb", VERBS)
LONGEST = 160
PROSE = {  # fields that have words of a table
    *("title", "says", "label", "heading", "under", "ends", "words", "measured", "sentence", "question"),
    *("unanswered", "blank", "unshown", "elsewhere", "listing", "told", "figures", "dots", "sides"),
}
NOTHING = (None, "", (), [], frozenset(), 0)
AVOID = {  # in a first sentence, and what to say
    r"\bnats?\b|\blogits?\b": "a probability; nats stand in tables",
    r"even attention|uniform": "if all tokens got the same",
    r"control text|\bcontrols?\b": "shuffled texts, other texts, other heads",
    r"stands? clear|stand so clear": "stands out",
    r"query side|key side": "at the token that looks",
    r"\bmedian\b": "the typical",
    r"\bpatched\b": "taken over from the other text",
    r"factor of|\d x\b": "times",
    r"probability mass|\bmass\b": "attention",
    r"attends? to": "looks at",
    r"\bmoves? (it|the answer)": "falls, rises, changes",
    r"\b(told|asked|held)\b": "a verb with a subject",
    r"\bsimply\b|\bjust\b|of course": "nothing",
    r"[–—]| - ": "two sentences",
}


def test_every_table_has_examples() -> None:
    assert TABLES.keys() - {"common"} == VERBS.keys()


@cache
def named(verb: str) -> set[str]:
    """The facts that a table names."""
    environment = words.environment()
    assert environment.loader is not None
    text = environment.loader.get_source(environment, f"{verb}.jinja")[0]
    return meta.find_undeclared_variables(environment.parse(text))


@cache
def examples(verb: str) -> dict[str, tuple[Any, Focus]]:
    """Of a table: a result, and what of it is looked at."""
    every = VERBS[verb].EXAMPLES.items()
    return {
        name: (make[0](), make[1]) if isinstance(make, tuple) else (make(), Focus()) for name, make in every
    }


@OF_EACH
def test_a_table_names_all_facts_and_the_result_has_what_else_it_names(verb: str) -> None:
    for each, _ in examples(verb).values():
        assert {*VERBS[verb].SAID(each).facts, *filter(partial(hasattr, each), named(verb))} == named(verb)


def test_every_macro_is_used() -> None:
    python = "".join(each.read_text() for each in PACKAGE.rglob("*.py"))
    for verb in VERBS:
        text = TABLES[verb].read_text()
        cases = {each.value.replace(" ", "_") for each in VERBS[verb].CASES}
        macros = {each.name for each in words.environment().parse(text).find_all(nodes.Macro)}
        assert cases <= macros
        unused = {
            name for name in macros - cases if f'"{name}"' not in python and text.count(f"{name}(") == 1
        }
        assert not unused, verb


@pytest.fixture(scope="module")
def sheets() -> dict[str, dict[str, Sheet | str]]:
    """Of each table the sheets of its examples, and under "" its lines that no example has run."""
    ran: dict[str, set[int]] = {}
    made, said = words.Said.__init__, words.Said.lines

    def noted(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.endswith(".jinja"):
            return None
        if event == "line":
            ran.setdefault(Path(frame.f_code.co_filename).stem, set()).add(frame.f_lineno)
        return noted

    def traced(run: Callable[..., Any]) -> Any:
        """Tables alone are traced, and not what else makes a sheet: that takes a quarter of the time."""
        sys.settrace(noted)
        try:
            return run()
        finally:
            sys.settrace(before)

    words.environment.cache_clear()
    environment = words.environment()
    environment.undefined = StrictUndefined
    tables = {each: environment.get_template(each) for each in environment.list_templates(["jinja"])}
    before, found = sys.gettrace(), dict[str, dict[str, Sheet | str]]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words.Said, "__init__", lambda *given: traced(lambda: made(*given)))
        patched.setattr(words.Said, "lines", lambda *given: traced(lambda: iter([*said(*given)])))
        for verb in VERBS:
            found[verb] = {name: sheet_of(*each) for name, each in examples(verb).items()}
            for sheet in found[verb].values():
                _ = sheet.every, sheet.more and [*sheet.more]
            listed = tables[f"{verb}.jinja"].debug_info
            left = {line for line, python in listed if python not in ran[verb]}
            text = TABLES[verb].read_text().splitlines()
            found[verb][""] = "\n".join(f"{line}: {text[line - 1]}" for line in sorted(left))
    words.environment.cache_clear()
    return found


@pytest.fixture(scope="module")
def shown(sheets: dict[str, dict[str, Sheet]]) -> dict[str, dict[str, str]]:
    """The answers of all examples."""
    return {verb: {name: sheets[verb][name].answer for name in examples(verb)} for verb in sheets}


@OF_EACH
def test_every_part_of_a_table_is_said_by_an_example(verb: str, sheets: dict[str, dict[str, str]]) -> None:
    assert not sheets[verb][""]


EXACT = re.compile(r"-?\d+\.\d{9,}(e-\d+)?")  # a number as files have it, where it is text


def rounded(part: Any) -> str:
    """A number in three digits, a text as it is; of many numbers how many and their sum."""
    if isinstance(part, Tokens):
        return rounded(part.labels)
    if isinstance(part, np.ndarray):
        return f"{part.shape} {np.nansum(abs(part)):.3g}" if part.size > 50 else rounded(part.tolist())
    if isinstance(part, list | tuple | frozenset):
        return f"[{' '.join(map(rounded, sorted(part) if isinstance(part, frozenset) else part))}]"
    if isinstance(part, float):
        return f"{part if abs(part) > 1e-12 else 0.0:.3g}"  # what rounding leaves is another elsewhere
    if isinstance(part, str) and EXACT.fullmatch(part):
        return rounded(float(part))
    return part.name if isinstance(part, Enum) else str(part)


def lines_of(part: Any) -> Iterator[str]:
    """A part of a sheet without its sentences, one line for each of the parts in it."""
    if isinstance(part, Column):
        texts = [part.text(row) for row in range(len(part.values))] if part.heading else []
        yield f"{part.name} {rounded([*part.values])} {rounded(texts)} {part.spared}"
        yield from lines_of(part.scale)
    elif isinstance(part, tuple | list) and any(map(is_dataclass, part)):
        for each in part:
            yield from lines_of(each)
    elif isinstance(part, Table):
        yield from lines_of(part.columns)
    elif is_dataclass(part) and type(part).__module__.startswith("attnscope.render."):
        simple = []
        for name, each in ((one.name, getattr(part, one.name)) for one in fields(part)):
            if name == "sections":
                each = [row for row, _ in each]
            lines = [] if name in PROSE or callable(each) else [*lines_of(each)]
            if len(lines) == 1 and not is_dataclass(each):
                simple.append(f"{name} {lines[0]}")
            else:
                yield from lines
        yield f"{type(part).__name__}: {', '.join(simple)}"
    elif isinstance(part, np.ndarray | Tokens) or (not is_dataclass(part) and part not in NOTHING):
        yield rounded(part)


@OF_EACH
def test_the_numbers_of_every_sheet_are_the_golden_ones(
    verb: str, sheets: dict[str, dict[str, Sheet]]
) -> None:
    """Of each example those lines that no example before it has; of a file's columns the first rows."""
    lines = dict[str, None]()
    for name in examples(verb):
        sheet = sheets[verb][name]
        parts = [sheet.departs, sheet.summary, [*sheet.opens.values()], [each for each, _ in sheet.proof]]
        parts += [*sheet.every, *sheet.more, sheet.next and sheet.next.command, type(sheet.main).__name__]
        parts += [(each.name, len(each.values), *each.values[:9]) for each in sheet.table().columns]
        if len(lines) == 0:
            parts += sheet_of(examples(verb)[name][0], Focus(verbose=True)).every
        lines |= dict.fromkeys([f"= {name}", *(line for part in parts for line in lines_of(part))])
    assert_golden(f"sheets/{verb}", "\n".join(lines) + "\n")


@OF_EACH
def test_every_case_has_an_example(verb: str) -> None:
    cases: type[StrEnum] = VERBS[verb].CASES
    assert {result.case for result, _ in examples(verb).values()} == {*cases}


@OF_EACH
def test_an_answer_has_the_numbers_of_its_case(verb: str, shown: dict[str, dict[str, str]]) -> None:
    for name, (case, *parts) in getattr(VERBS[verb], "NUMBERS", {}).items():
        assert examples(verb)[name][0].case == case, name
        assert [each for each in parts if each not in shown[verb][name]] == [], name


def sentences(answer: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z0-9(“\[])", answer)


@OF_EACH
def test_a_first_sentence_is_short_and_in_plain_words(verb: str, shown: dict[str, dict[str, str]]) -> None:
    for name in examples(verb):
        first = sentences(shown[verb][name])[0]
        assert len(first) <= LONGEST, f"{name}, {len(first)}: {first}"
        for word, instead in AVOID.items():
            assert not re.search(word, first), f"{name}, {word}: say {instead}: {first}"


@OF_EACH
def test_what_is_said_is_sentences(verb: str, shown: dict[str, dict[str, str]]) -> None:
    for name in examples(verb):
        answer = shown[verb][name]
        assert len(sentences(answer)) <= 3, answer
        assert "  " not in answer, answer
        assert not re.search(r" [.,;:](?!\d)|[.]{2}|\( | \)", answer.replace("...", "")), answer
        assert not answer[0].islower(), answer
        assert answer.endswith((".", ")", "?")), answer


def test_blanks_of_a_token_are_not_those_of_a_table() -> None:
    say = words.Said("find", None, {"key": "“a  b”", "pattern": None, "decoder": True, "query": "x"})
    assert say("link") == "at “a  b” when the decoder reads x"


def test_a_fact_that_is_missing_is_a_dash_and_no_exception() -> None:
    assert issubclass(words.environment().undefined, Undefined)
    facts = dict.fromkeys(named("find"))
    assert words.Said("find", None, facts)("here_and_shuffled").startswith("- of its attention here, -")


def _phrases(said: object) -> set[str]:
    """Every five words that stand side by side."""
    found = re.findall(r"[a-z']+", said.lower()) if isinstance(said, str) else []
    return {" ".join(found[i : i + 5]) for i in range(len(found) - 4)}


def test_hardly_a_test_elsewhere_names_a_sentence() -> None:
    """So that one can be said better in its table alone; tests of a case ask for it and for its numbers."""
    tables = [words.environment().parse(each.read_text()) for each in TABLES.values()]
    texts = (text.data for table in tables for text in table.find_all(nodes.TemplateData))
    constants = (text.value for table in tables for text in table.find_all(nodes.Const))
    phrases = {each for said in (*texts, *constants) for each in _phrases(said)}
    files = {path.name: path.read_text() for path in SPECIMENS.parent.rglob("test_*.py")}
    naming = [
        f"{name}: {test.name}"
        for name, text in files.items()
        if phrases & _phrases(text)
        for test in ast.parse(text).body
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")
        if any(
            phrases & _phrases(said.value)
            for line in ast.walk(test)
            if isinstance(line, ast.Assert)
            for said in ast.walk(line)
            if isinstance(said, ast.Constant)
        )
    ]
    assert len(naming) <= 60, naming
