"""Every mechanism of attention that a model type has is read on an accelerator as on the processor."""

from typing import Any

import pytest
from zoo.survey import Survey

from .families import NAMED, compared, unlike


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize("model_type", NAMED)
def test_a_model_type_is_read_as_on_the_processor(emulated: Any, model_type: str, kind: str) -> None:
    assert compared(model_type, kind) == ("", [])


def test_a_layer_that_is_not_certified_there_would_be_noticed() -> None:
    right = Survey("bert", layers=2, verdicts={"certified": 2}, weight_error=1e-8)
    assert unlike(Survey("bert", layers=2, verdicts={"certified": 2}, weight_error=9e-8), right) == []
    assert unlike(Survey("bert", layers=2, verdicts={"certified": 1, "failed": 1}), right)
    assert unlike(Survey("bert", layers=1, verdicts={"certified": 1}), right)
