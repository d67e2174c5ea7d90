"""The schema of every kind describes its files, as a validator that knows nothing of attnscope reads it."""

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import made_stored
import pytest
from jsonschema import Draft202012Validator

from attnscope.render import files
from attnscope.results import json_schema
from attnscope.results.result import KINDS, name_of
from attnscope.results.stored.schema import DESCRIBED

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


@cache
def described(kind: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(kind))


@pytest.mark.parametrize("kind", DESCRIBED)
def test_every_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(json_schema(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_says_what_it_means(kind: str) -> None:
    whole = json_schema(kind)
    for name, each in {kind: whole, **whole["$defs"]}.items():
        for key, schema in each.get("properties", {}).items():
            axes, _, said = schema["description"].rpartition(" x ")  # an array has its axes before
            assert len(said.split()) >= 4, f"{key} of {name}: {axes}{said}"


def test_what_is_said_of_a_key_is_what_its_class_says_of_it() -> None:
    keys = json_schema("ablation")["$defs"]["HeadEffect"]["properties"]
    assert keys["predicted"]["description"] == "`predicted` is the change that the gradient foretells."
    assert keys["kl"]["description"].endswith("1 less the cosine to what it was."), (
        "the sentence behind it names another key"
    )
    assert "`controls` heads of the same layer" in keys["below"]["description"]
    assert json_schema("finding")["properties"]["weights"]["description"].startswith(
        "layer x head: `weights[i, j]` belongs"
    )


def test_the_specimens_are_of_every_kind() -> None:
    assert {name_of(type(make())) for make in made_stored.MADE.values()} == set(KINDS)


@pytest.mark.parametrize("name", made_stored.MADE)
def test_a_file_says_its_answer_first_and_is_what_the_schema_of_its_kind_says(name: str) -> None:
    document = json.loads(files.as_json(made_stored.MADE[name]()))
    assert list(document)[:2] == ["schema", "answer"]
    assert isinstance(document["answer"], str)
    assert len(document["answer"].split()) >= 3
    assert "\n" not in document["answer"]
    own = document["schema"].removeprefix("attnscope.").partition("/")[0]
    validator = Draft202012Validator(json.loads((SCHEMAS / f"{own}.json").read_text("utf-8")))
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not any(described(other).is_valid(document) for other in KINDS if other != own)
    del document["answer"]
    assert not described(own).is_valid(document)


@pytest.mark.parametrize(
    ("way", "wrong"),
    [
        (("layer",), "three"),
        (("weights", 0), 0.5),
        (("allowed", 0, 0), 0.5),
        (("certificate", "verdict"), "sure"),
        (("query_tokens", 0, "text"), 3),
        (("provenance", "token_ids"), ["x"]),
    ],
)
def test_what_is_wrong_in_a_file_is_wrong_by_its_schema(way: tuple[Any, ...], wrong: Any) -> None:
    document = json.loads(files.as_json(made_stored.MADE["head"]()))
    validator = Draft202012Validator(json_schema("head"))
    changed, missing = deepcopy(document), deepcopy(document)
    inner: Any = changed
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = wrong
    del missing[way[0]]
    assert validator.is_valid(document)
    assert not validator.is_valid(changed)
    assert not validator.is_valid(missing)
