"""Files of found heads and of flow whose parts do not fit together are refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_finding
import made_flow
import pytest
import resealed

from attnscope.errors import InputError
from attnscope.render import files
from attnscope.results import load

Change = Callable[[dict[str, Any]], object]


def test_what_is_not_changed_is_read(tmp_path: Path) -> None:
    for made in (made_finding.finding(), made_flow.flow()):
        (tmp_path / "whole.json").write_text(files.as_json(made))
        assert type(load(tmp_path / "whole.json")) is type(made)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told["weights"].pop(), "'weights' is 2 x 4 where its axes are layer 3 x head 4"),
        (lambda told: told["verdicts"].pop(), "'verdicts' are not one for each"),
        (lambda told: told["verdicts"][0].__setitem__(1, "sure"), "'verdicts[0][1]' is none of certified"),
        (lambda told: told["question"].update(key=99), "a position that is no token's"),
        (lambda told: told["question"].update(pattern="next"), "'question' is not one thing"),
        (lambda told: told["question"].update(pattern="diagonal"), "is none of previous"),
        (lambda told: told["controls"].pop("mean"), "'controls.mean' is missing"),
        (lambda told: told["controls"].pop("seed"), "'controls.seed' is missing"),
    ],
)
def test_a_damaged_ranking_is_refused(tmp_path: Path, change: Change, said: str) -> None:
    refused(tmp_path, json.loads(files.as_json(made_finding.finding())), change, said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told.update(query=13), "'query' is no token's position"),
        (lambda told: told["rollout"].pop(), "'rollout' is 2 x 13"),
        (lambda told: told["ablated"]["effects"].append(0.5), "'ablated.effects' is 14"),
        (lambda told: told["ablated"]["trust"][0].pop("below"), "below' is missing"),
    ],
)
def test_a_damaged_flow_is_refused(tmp_path: Path, change: Change, said: str) -> None:
    refused(tmp_path, json.loads(files.as_json(made_flow.flow())), change, said)


def refused(folder: Path, document: dict[str, Any], change: Change, said: str) -> None:
    change(document)
    (folder / "changed.json").write_text(json.dumps(resealed.document(document)))
    with pytest.raises(InputError, match="is damaged") as error:
        load(folder / "changed.json")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
