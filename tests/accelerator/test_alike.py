"""Two documents are alike where only rounding and the name of a device tell them apart."""

import json
from typing import Any

import pytest
from zoo.survey import Survey

from .alike import differences
from .families import NAMED, compared, unlike

DOCUMENT: dict[str, Any] = {
    "verdict": "certified",
    "weights": [[0.25, 0.75], [0.5, 0.5], [1e-4, 0.9999]],
    "scores": [[-31.5, 4.25]],
    "certificate": {"precision": "float32 on cpu", "weight_error": 3e-8, "power": 246612.36},
    "provenance": {"device": "cpu", "dtype": "float32"},
    "tokens": ["the", "cpu"],
    "answer": "The map can be read (trustworthiness .90): the nearest key is the strongest for 9 of 11.",
    "layer": 3,
    "tiled": False,
    "query_places": [[12.5, -3.0]],
    "divergence": 0.26,
    "changes": [],
    "measures": {"near": {"values": [[-0.992372]]}, "entropy": {"values": [[0.5]]}},
    "checked": "It is the same to the last bit (2 heads).",
    "ranked": [{"layer": 2, "head": 1, "change": 0.5}, {"layer": 0, "head": 3, "change": 0.25}],
}


def changed(**given: Any) -> str:
    return json.dumps(DOCUMENT | given)


PLACE = {"device": "emulated:0", "dtype": "float32"}


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"provenance": PLACE},
        {"weights": [[0.2500004, 0.7499996], [0.5, 0.5], [1.0004e-4, 0.9999]]},
        {"scores": [[-31.50001, 4.25001]]},
        {
            "certificate": {
                "precision": "float32 on emulated", "weight_error": 9e-8, "power": 246612.4,
            }
        },
        {"answer": DOCUMENT["answer"].replace(".90", ".92")},
        {"measures": {"near": {"values": [[-0.9923]]}, "entropy": {"values": [[0.5]]}}},
        {"query_places": [[-40.0, 7.5]], "divergence": 0.3},
        {"changes": ["the device is another one: stored cpu, now emulated:0"]},
        {"checked": "It is the same up to rounding (2 heads, off by 2.1e-6 at most, 1.2e-5 allowed)."},
        {"ranked": DOCUMENT["ranked"][::-1]},
    ],
)  # fmt: skip
def test_rounding_and_the_name_of_a_device_are_no_difference(same: dict[str, Any]) -> None:
    assert differences(changed(**same), changed()) == []


@pytest.mark.parametrize(
    ("other", "where"),
    [
        ({"verdict": "failed"}, ".verdict"),
        ({"weights": [[0.25, 0.75], [0.5, 0.5], [2e-4, 0.9999]]}, ".weights[2][0]"),
        ({"weights": [[0.25, 0.75], [0.5, 0.50025], [1e-4, 0.9999]]}, ".weights[1][1]"),
        ({"weights": [[0.25, 0.75], [0.5, 0.5]]}, ".weights"),
        ({"scores": [[-31.5, 4.2525]]}, ".scores[0][1]"),
        ({"scores": [[-31.5, None]]}, ".scores[0][1]"),
        ({"answer": DOCUMENT["answer"].replace("9 of 11", "8 of 11")}, ".answer"),
        ({"layer": 2}, ".layer"),
        ({"tiled": 0}, ".tiled"),
        ({"tokens": ["the", "gpu"]}, ".tokens[1]"),
        ({"provenance": {"device": "emulated:0", "dtype": "float16"}}, ".provenance.dtype"),
        ({"divergence": 0.5}, ".divergence"),
        ({"query_places": [[12.5]]}, ".query_places[0]"),
        ({"changes": ["the versions are others"]}, ".changes"),
        ({"checked": "It is the same up to rounding (1 head, off by 2.1e-6 at most)."}, ".checked"),
        ({"ranked": [{"layer": 2, "head": 1, "change": 0.5}]}, ".ranked"),
        (
            {"ranked": [{"layer": 2, "head": 1, "change": 0.25}, {"layer": 0, "head": 3, "change": 0.25}]},
            ".ranked[1].change",
        ),
        (
            {"measures": {"near": {"values": [[-0.99]]}, "entropy": {"values": [[0.5]]}}},
            ".measures.near.values[0][0]",
        ),
        (
            {"measures": {"near": {"values": [[-0.992372]]}, "entropy": {"values": [[0.4999]]}}},
            ".measures.entropy.values[0][0]",
        ),
        ({"more": 1}, ""),
    ],
)
def test_whatever_else_differs_is_named_with_its_place(other: dict[str, Any], where: str) -> None:
    (told,) = differences(changed(**other), changed())
    assert told.startswith(f"{where}: ")


@pytest.mark.parametrize(("dtype", "off"), [("bfloat16", 0.02), ("float16", 0.002)])
def test_half_precision_may_be_off_by_its_own_units_and_no_more(dtype: str, off: float) -> None:
    here = {"provenance": {"device": "cpu", "dtype": dtype}}
    near, far = ({"weights": [[0.25, 0.75 + by], [0.5, 0.5], [1e-4, 0.9999]]} for by in (off, 4 * off))
    assert differences(changed(**here, **near), changed(**here)) == []
    assert differences(changed(**here, **far), changed(**here))


def test_of_many_documents_each_is_held_beside_its_own() -> None:
    two = f"{changed()}\n{changed(layer=2)}\n"
    assert differences(two, two) == []
    (told,) = differences(f"{changed()}\n{changed()}\n", two)
    assert told.startswith(".layer: 3")
    assert differences(changed(), two) == ["1 documents, not 2"]


@pytest.mark.parametrize("model_type", NAMED)
def test_a_model_type_is_read_as_on_the_processor(emulated: Any, model_type: str) -> None:
    assert compared(model_type, "mps") == ("", [])


def test_a_layer_that_is_not_certified_there_would_be_noticed() -> None:
    right = Survey("bert", layers=2, verdicts={"certified": 2}, weight_error=1e-8)
    assert unlike(Survey("bert", layers=2, verdicts={"certified": 2}, weight_error=9e-8), right) == []
    assert unlike(Survey("bert", layers=2, verdicts={"certified": 1, "failed": 1}), right)
    assert unlike(Survey("bert", layers=1, verdicts={"certified": 1}), right)
