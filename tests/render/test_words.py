"""The words of every verb as words: plain and short, each case and each part of a table shown by an example.

`cases_VERB.py` among the specimens has the examples of the table `attnscope/render/words/VERB.jinja`.
"""

import ast
import re
import sys
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from jinja2 import StrictUndefined, meta, nodes
from jinja2.runtime import Undefined

from attnscope.render import words
from attnscope.render.focus import Focus
from attnscope.render.sheets import sheet_of

SPECIMENS = Path(__file__).parents[1] / "specimens"
TABLES = Path(words.__file__).parent
SHEETS = TABLES.parent / "sheets"
VERBS = {each.stem.removeprefix("cases_"): import_module(each.stem) for each in SPECIMENS.glob("cases_*.py")}
EXAMPLES = [(verb, name) for verb, cases in VERBS.items() for name in cases.EXAMPLES]
LONGEST = 160
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
    tables = {each.stem for each in TABLES.glob("*.jinja")} - {"common"}
    assert tables == VERBS.keys()


def named(verb: str) -> set[str]:
    """The facts that a table names."""
    environment = words.environment()
    assert environment.loader is not None
    text = environment.loader.get_source(environment, f"{verb}.jinja")[0]
    return meta.find_undeclared_variables(environment.parse(text))


@pytest.mark.parametrize("verb", VERBS)
def test_the_facts_of_a_table_are_those_that_are_found(verb: str) -> None:
    for make in VERBS[verb].EXAMPLES.values():
        assert VERBS[verb].SAID(_result(make)).facts.keys() == named(verb)


@pytest.mark.parametrize("verb", VERBS)
def test_every_macro_is_used(verb: str) -> None:
    text = (TABLES / f"{verb}.jinja").read_text()
    python = "".join(each.read_text() for each in SHEETS.parent.rglob("*.py"))
    cases = {each.value.replace(" ", "_") for each in VERBS[verb].CASES}
    macros = {each.name for each in words.environment().parse(text).find_all(nodes.Macro)}
    assert cases <= macros
    unused = {name for name in macros - cases if f'"{name}"' not in python and text.count(f"{name}(") == 1}
    assert not unused


def _result(make: Any) -> Any:
    return make[0]() if isinstance(make, tuple) else make()


def _focus(make: Any) -> Focus:
    return make[1] if isinstance(make, tuple) else Focus()


@pytest.fixture(scope="module")
def shown() -> dict[tuple[str, str], str]:
    """The answer of every example, and under `VERB, ""` the lines of its table that no example has run."""
    ran: dict[str, set[int]] = {}

    def noted(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.endswith(".jinja"):
            return None
        if event == "line":
            ran.setdefault(Path(frame.f_code.co_filename).stem, set()).add(frame.f_lineno)
        return noted

    words.environment.cache_clear()
    environment = words.environment()
    environment.undefined = StrictUndefined
    before = sys.gettrace()
    found: dict[tuple[str, str], str] = {}
    try:
        for verb, name in EXAMPLES:
            make = VERBS[verb].EXAMPLES[name]
            result = _result(make)
            sys.settrace(noted)
            sheet = sheet_of(result, _focus(make))
            _ = sheet.every, sheet.more and [*sheet.more]
            sys.settrace(before)
            found[verb, name] = sheet.answer
    finally:
        sys.settrace(before)
        words.environment.cache_clear()
    for verb in VERBS:
        template = environment.get_template(f"{verb}.jinja")
        lines = {line for line, python in template.debug_info if python not in ran[verb]}
        text = (TABLES / f"{verb}.jinja").read_text().splitlines()
        found[verb, ""] = "\n".join(f"{line}: {text[line - 1]}" for line in sorted(lines))
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_part_of_a_table_is_said_by_an_example(verb: str, shown: dict[tuple[str, str], str]) -> None:
    assert not shown[verb, ""]


@pytest.mark.parametrize("verb", VERBS)
def test_every_case_has_an_example(verb: str) -> None:
    cases: type[StrEnum] = VERBS[verb].CASES
    assert {_result(make).case for make in VERBS[verb].EXAMPLES.values()} == {*cases}


@pytest.mark.parametrize(
    ("verb", "name"),
    [(verb, name) for verb, cases in VERBS.items() for name in getattr(cases, "NUMBERS", ())],
)
def test_an_answer_has_the_numbers_of_its_case(
    verb: str, name: str, shown: dict[tuple[str, str], str]
) -> None:
    case, *parts = VERBS[verb].NUMBERS[name]
    assert _result(VERBS[verb].EXAMPLES[name]).case == case
    assert [each for each in parts if each not in shown[verb, name]] == []


def sentences(answer: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z0-9(“\[])", answer)


@pytest.mark.parametrize(("verb", "name"), EXAMPLES)
def test_a_first_sentence_is_short_and_in_plain_words(
    verb: str, name: str, shown: dict[tuple[str, str], str]
) -> None:
    first = sentences(shown[verb, name])[0]
    assert len(first) <= LONGEST, f"{len(first)}: {first}"
    for word, instead in AVOID.items():
        assert not re.search(word, first), f"{word}: say {instead}: {first}"


@pytest.mark.parametrize(("verb", "name"), EXAMPLES)
def test_what_is_said_is_sentences(verb: str, name: str, shown: dict[tuple[str, str], str]) -> None:
    answer = shown[verb, name]
    assert len(sentences(answer)) <= 3, answer
    assert "  " not in answer
    assert not re.search(r" [.,;:](?!\d)|[.]{2}|\( | \)", answer.replace("...", "")), answer
    assert not answer[0].islower()
    assert answer.endswith((".", ")", "?"))


def test_blanks_of_a_token_are_not_those_of_a_table() -> None:
    say = words.Said("find", {"key": "“a  b”", "pattern": None, "decoder": True, "query": "x"})
    assert say("link") == "at “a  b” when the decoder reads x"


def test_a_fact_that_is_missing_is_a_dash_and_no_exception() -> None:
    assert issubclass(words.environment().undefined, Undefined)
    facts = dict.fromkeys(named("find"))
    assert words.Said("find", facts)("here_and_shuffled").startswith("- of its attention here, -")


def _phrases(said: object) -> set[str]:
    """Every five words that stand side by side."""
    found = re.findall(r"[a-z']+", said.lower()) if isinstance(said, str) else []
    return {" ".join(found[i : i + 5]) for i in range(len(found) - 4)}


def test_hardly_a_test_elsewhere_names_a_sentence() -> None:
    """So that one can be said better in its table alone; tests of a case ask for it and for its numbers."""
    tables = [words.environment().parse(each.read_text()) for each in TABLES.glob("*.jinja")]
    texts = (text.data for table in tables for text in table.find_all(nodes.TemplateData))
    constants = (text.value for table in tables for text in table.find_all(nodes.Const))
    phrases = {each for said in (*texts, *constants) for each in _phrases(said)}
    naming = [
        f"{path.name}: {test.name}"
        for path in SPECIMENS.parent.rglob("test_*.py")
        for test in ast.walk(ast.parse(path.read_text()))
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
