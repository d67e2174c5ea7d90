"""The mutation testing itself: what counts as one change, and whether an exchanged function is in use."""

from pathlib import Path

import pytest

from tests.mutation.mutants import mutants
from tests.mutation.splice import functions_of, splice


def changed(line: str) -> list[str]:
    """A line of a function's body with each of its changes."""
    head = "def function(a, b):\n    "
    made = [mutant.source for mutant in mutants(head + line)]
    assert all(source.startswith("def function(a, b):\n    ") for source in made)
    return [source.partition("\n    ")[2] for source in made]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return a < b", ["return a <= b"]),
        ("return a < b <= 3", ["return a <= b <= 3", "return a < b < 3", "return a < b <= 4"]),
        ("return a is not b", ["return a is b"]),
        ("return a + b * 2", ["return a - b * 2", "return a + b / 2", "return a + b * 3"]),
        ("a += b", ["a -= b"]),
        ("return a and b", ["return a or b"]),
        ("return not a", ["return a"]),
        ("return a[-1]", ["return a[1]", "return a[-2]"]),
        ("return a[b:]", ["return a[:]"]),
        ("return max(a.amin(), b)", ["return min(a.amin(), b)", "return max(a.amax(), b)"]),
        ("return f(a, keep=True)", ["return f(a, keep=False)"]),
        ("return a if b else 0.5", ["return a if not b else 0.5", "return a if b else 1.5"]),
        ("return [x for x in a if x]", ["return [x for x in a if not x]"]),
        ("return [x for x in a if x is b]", ["return [x for x in a if x is not b]"]),
        ("return 'a text', None", []),
    ],
)
def test_each_operator_constant_condition_and_bound_is_changed_once(line, expected):
    assert changed(line) == expected


def test_a_condition_is_turned_round_and_its_operators_are_changed():
    assert changed("if a > b: return a") == [
        "if not a > b:\n        return a",
        "if a >= b:\n        return a",
    ]


def test_what_only_a_type_checker_reads_is_left_alone():
    source = "if TYPE_CHECKING:\n    pass\n\ndef f(a: int | None) -> int | str:\n    b: a | None = a"
    assert mutants(source) == []


def test_a_mutant_is_known_by_its_function_and_its_change_and_not_by_its_line():
    source = "class A:\n    def f(self):\n        return self.first + self.second_of_them\n"
    (mutant,), (moved,) = mutants(source), mutants("import this\n\n\n" + source)
    assert mutant.key == moved.key
    assert mutant.key == ("A.f", "self.first + self.second_of_them -> self.first - self.second_of_them")
    assert (mutant.line, moved.line) == (3, 6)


def test_changes_that_look_alike_are_told_apart_by_number():
    keys = [mutant.change for mutant in mutants("def f(a, b):\n    c = a < b\n    return a < b")]
    assert keys == ["a < b -> a <= b", "a < b -> a <= b (no. 2)"]


def test_what_is_reached_is_the_statement_and_for_a_default_the_body():
    body = "    c = a\n    if c > b and \\\n            b:\n        return c + b\n    return 3\n"
    source = f"LIMIT = 1\n\n\ndef f(a, b=2):\n{body}"
    reached = {each.change: (each.reached, each.in_body) for each in mutants(source)}
    assert reached["1 -> 2"] == (None, False)
    assert reached["2 -> 3"] == (range(5, 10), False)
    assert reached["c > b and b -> c >= b and b"] == (range(6, 8), True)
    assert reached["c + b -> c - b"] == (range(8, 9), True)
    assert reached["3 -> 4"] == (range(9, 10), True)


SOURCE = """
from functools import cache
from contextlib import contextmanager

@cache
def kept(number):
    return number + 1

@contextmanager
def opened(number):
    yield number + 1

def maker(number):
    def inner(other):
        return number + other
    return inner

class Of:
    @property
    def one(self):
        return 1

MADE = maker(10)
LISTED = [kept, lambda a: a + 1]
"""


@pytest.fixture
def loaded(tmp_path: Path):
    path = tmp_path / "loaded.py"
    space: dict = {"__name__": "loaded"}
    exec(compile(SOURCE, str(path), "exec"), space)
    functions = functions_of([path])[path]

    def change(function: str, old: str, new: str) -> bool:
        return splice(path, functions, function, SOURCE.replace(old, new))

    return space, change


def test_an_exchanged_function_is_in_use_behind_decorators_and_in_closures(loaded):
    space, change = loaded
    assert change("kept", "number + 1\n\n@context", "number + 2\n\n@context")
    assert space["LISTED"][0](5) == 7
    assert change("opened", "yield number + 1", "yield number + 3")
    with space["opened"](5) as found:
        assert found == 8
    assert change("maker.inner", "number + other", "number - other")
    assert space["MADE"](4) == 6
    assert space["maker"](20)(4) == 16
    assert change("Of.one", "return 1", "return 2")
    assert space["Of"]().one == 2


def test_what_is_made_by_importing_cannot_be_exchanged(loaded):
    _, change = loaded
    assert not change("module", "a + 1", "a + 2")
