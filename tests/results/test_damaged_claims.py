"""Files of claims whose parts do not fit together are refused in one line."""

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cases_ablate
import cases_find
import cases_flow
import made_stored
import pytest
import resealed
from matplotlib.figure import Figure
from matplotlib.text import Text

from attnscope.errors import Damaged, InputError
from attnscope.render import files
from attnscope.render.figure import figure_of
from attnscope.render.look import Look
from attnscope.results import load
from attnscope.results.claims.effect import Effect
from attnscope.results.claims.intervention import Measured

Change = Callable[[dict[str, Any]], object]


def test_what_is_not_changed_is_read(tmp_path: Path) -> None:
    for made in (cases_find.finding(), cases_flow.flow()):
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
    refused(tmp_path, json.loads(files.as_json(cases_find.finding())), change, said)


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
    refused(tmp_path, json.loads(files.as_json(cases_flow.flow())), change, said)


def refused(folder: Path, document: dict[str, Any], change: Change, said: str) -> None:
    change(document)
    (folder / "changed.json").write_text(json.dumps(resealed.document(document)))
    with pytest.raises(InputError, match="is damaged") as error:
        load(folder / "changed.json")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def of_first(key: str, **fields: float) -> Change:
    return lambda told: told[key][0].update(fields)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_first("heads", change=5.0), "'change' does not follow from 'before' and 'after'"),
        (of_first("heads", after=0.9), "'change' does not follow from 'before' and 'after'"),
        (of_first("heads", below=7, controls=3), "'below' counts more than 'controls'"),
        (of_first("heads", kl=-1.0), "'kl' is below 0"),
        (lambda told: told["target"].update(probability=1.5), "'probability' is no probability"),
    ],
)
def test_an_ablation_whose_numbers_contradict_one_another_is_refused(
    tmp_path: Path, change: Change, said: str
) -> None:
    refused(tmp_path, json.loads(files.as_json(cases_ablate.ablation())), change, said)


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        ([0.7, 0.6], "'guesses' are above 1 together"),
        ([1.2, 0.1], "is no probability"),
        ([-0.1, 0.1], "is no"),
    ],
)
def test_a_prediction_whose_probabilities_are_none_is_refused(
    tmp_path: Path, probabilities: list[float], said: str
) -> None:
    def change(told: dict[str, Any]) -> None:
        for guess, probability in zip(told["blanks"][0]["guesses"], probabilities, strict=False):
            guess["probability"] = probability

    result = made_stored.MADE["masked words"]()
    assert len(result.blanks[0].guesses) > 1
    refused(tmp_path, json.loads(files.as_json(result)), change, said)


def test_a_stored_prediction_carries_the_mark_of_stored_claims(tmp_path: Path) -> None:
    result = made_stored.MADE["masked words"]()
    again = load(result.save(tmp_path / "x.json"))
    assert "as stored, not checked here: " in " ".join(str(again).split())
    assert "as stored" not in str(result)
    assert "Mine · ○ as stored, not checked here" in texts(figure_of(again, look=Look(title="Mine")))
    assert "Mine" in texts(figure_of(result, look=Look(title="Mine")))


def texts(figure: Figure) -> list[str]:
    return [each.get_text() for each in figure.findobj(Text) if isinstance(each, Text)]


@pytest.mark.parametrize(
    ("measured", "before", "after", "change", "reads"),
    [
        (Measured.CHANCE, 0.5, 0.25, -0.6931472, True),
        (Measured.CHANCE, 0.5, 0.25, -0.25, False),  # that of the probability itself
        (Measured.CHANCE, 0.5, 1e-200, -459.8238717, True),
        (Measured.CHANCE, 0.5, 0.0, -812.5, True),  # of a probability too small for a float
        (Measured.CHANCE, 0.5, 0.0, -math.inf, True),
        (Measured.CHANCE, 1.5, 0.5, -1.0986123, False),
        (Measured.DIFFERENCE, 0.5, 0.25, -0.25, True),
        (Measured.DIFFERENCE, 0.5, 0.25, -0.6931472, False),
        (Measured.TURN, 1.0, -0.25, -1.25, True),
    ],
)
def test_a_change_follows_from_both_numbers_by_what_is_measured(
    measured: Measured, before: float, after: float, change: float, reads: bool
) -> None:
    effect = Effect(before, after, change, 0.1)
    with nullcontext() if reads else pytest.raises(Damaged):
        effect.check_change(measured)


@pytest.mark.parametrize("where", ["group", "floor", "total"])
def test_changes_of_groups_of_controls_and_of_texts_are_looked_at_too(tmp_path: Path, where: str) -> None:
    made = cases_ablate.patched() if where == "total" else cases_ablate.together()
    told = json.loads(files.as_json(made))
    at = {"group": ("group", "effect"), "floor": ("noise_floor", "random", 0), "total": ("total",)}[where]

    def change(document: Any) -> None:
        for each in at:
            document = document[each]
        document["change"] = 5.0

    refused(tmp_path, told, change, "'change' does not follow")


def test_what_is_no_number_is_not_taken_for_a_contradiction(tmp_path: Path) -> None:
    told = json.loads(files.as_json(cases_ablate.ablation()))
    told["heads"][0].update(after=0.0, change=None, kl=None)
    (tmp_path / "x.json").write_text(json.dumps(resealed.document(told)))
    assert math.isnan(load(tmp_path / "x.json").heads[0].change)
