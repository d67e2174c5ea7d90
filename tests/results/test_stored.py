"""What is written is read again, whatever it holds; files whose parts do not fit together are refused."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cases_ablate
import cases_find
import cases_flow
import made_results as made
import made_stored
import numpy as np
import pytest
import resealed
from matplotlib.figure import Figure
from matplotlib.text import Text

import attnscope
from attnscope.errors import Damaged, InputError
from attnscope.render import files
from attnscope.render.figure import figure_of
from attnscope.render.look import Look
from attnscope.render.terminal.sheet import written
from attnscope.results import HeadAttention, Result, Verification, load
from attnscope.results.base.presented import Presented
from attnscope.results.claims.effect import Effect, Measured
from attnscope.results.result import KINDS
from attnscope.results.stored.strict import LAYOUT

STORED = (".json", ".npz")
LEFT_OUT = ("picture", "pictures", "sound", "sounds")  # what JSON does not hold and a picture needs


@cache
def original(name: str) -> Result:
    return made_stored.MADE[name]()


def stored(folder: Path, name: str, suffix: str) -> Result:
    path = folder / f"stored{suffix}"
    path.write_bytes(files.numbers(original(name), suffix))
    return load(path)


def json_of(folder: Path, document: object) -> Path:
    path = folder / "changed.json"
    path.write_text(json.dumps(document))
    return path


def test_every_schema_is_among_the_kinds() -> None:
    made_here = {json.loads(files.as_json(original(name)))["schema"] for name in made_stored.MADE}
    assert made_here == {f"attnscope.{kind}/2" for kind in KINDS}
    assert {*KINDS.values(), HeadAttention} == {kind for kind in every_class(Presented) if is_dataclass(kind)}


def every_class(kind: type) -> Iterator[type]:
    """Those that are derived from a class, in the package itself."""
    for each in kind.__subclasses__():
        if each.__module__.startswith("attnscope."):
            yield from (each, *every_class(each))


@pytest.mark.parametrize("suffix", STORED)
def test_numbers_that_are_none_come_back_as_what_they_were(tmp_path: Path, suffix: str) -> None:
    head = stored(tmp_path, "head with sink and terms", suffix)
    certificate = head.certificate
    assert certificate.weight_error == certificate.output_tolerance == np.inf
    assert np.isnan(certificate.output_error)
    assert certificate.faults[1].output_error == -np.inf
    assert np.isneginf(head.terms["mask"][0, 1:]).all()
    assert np.isnan(head.scaled[0, 1:]).all()
    path = tmp_path / f"nan{suffix}"
    path.write_bytes(files.numbers(made.head(sink=np.nan, sink_by_query=True), suffix))
    assert np.isnan(load(path).sink)


@pytest.mark.parametrize("suffix", STORED)
def test_tokens_that_are_one_and_the_same_stay_so_and_others_do_not(tmp_path: Path, suffix: str) -> None:
    same = stored(tmp_path, "head", suffix), stored(tmp_path, "head that was written", suffix)
    assert [head.query_tokens is head.key_tokens for head in same] == [False, True]
    equal = stored(tmp_path, "head of equal tokens", suffix)
    assert equal.query_tokens == equal.key_tokens
    assert equal.query_tokens is not equal.key_tokens
    assert equal.query_tokens.texts[1] == equal.query_tokens.items[0].piece == made_stored.HALF


def test_what_json_leaves_out_is_asked_for_by_the_name_of_the_file_that_has_it(tmp_path: Path) -> None:
    overview = stored(tmp_path, "overview", ".json")
    assert overview.weights is None
    assert overview.special_mass == original("overview").special_mass
    with pytest.raises(InputError, match="read from JSON"):
        overview.dense_weights  # noqa: B018 - the asking is what is refused
    picture = stored(tmp_path, "picture", ".json").picture
    assert picture.pixels is None
    assert picture.size == (31, 52)
    assert stored(tmp_path, "sound", ".json").sound.seconds == original("sound").sound.seconds
    for name in LEFT_OUT:
        assert figure_of(stored(tmp_path, name, ".npz"))
        with pytest.raises(InputError, match="npz"):
            figure_of(stored(tmp_path, name, ".json"))


def test_a_file_of_another_layout_says_so(tmp_path: Path) -> None:
    document = json.loads(files.as_json(original("head")))
    for layout in (LAYOUT - 1, LAYOUT + 1, None, "three"):
        with pytest.raises(InputError, match="was written by another attnscope: its layout is"):
            load(json_of(tmp_path, document | {"layout": layout}))


def test_the_exit_of_a_failed_verification_is_the_same(tmp_path: Path) -> None:
    again = stored(tmp_path, "verification of what is infinite", ".json")
    assert isinstance(again, Verification)
    assert (again.verdict, again.outputs[0].difference) == ("failed", np.inf)


@pytest.fixture(scope="module")
def real() -> dict[str, Result]:
    """A report and an overview of the bundled model, as commands make them."""
    model = attnscope.load("demo")
    reading = model.read("the cat sat on the [MASK] because it was tired .")
    return {"report": reading.report(1, 2), "overview": reading.overview()}


def but_words(content: bytes) -> object:
    """A document without what is said of it in words, and the hashes of that; an archive as it is."""
    if not content.startswith(b"{"):
        return content
    told = json.loads(content)
    for key in ("answer", "next"):
        told.pop(key, None)
        told["digests"].pop(key, None)
    return told


@pytest.mark.usefixtures("believing")
@pytest.mark.parametrize("suffix", STORED)
@pytest.mark.parametrize("name", ["report", "overview"])
def test_a_result_of_the_bundled_model_comes_back_to_the_bit(
    tmp_path: Path, real: dict[str, Result], name: str, suffix: str
) -> None:
    path = real[name].save(tmp_path / f"real{suffix}")
    again = load(path)
    assert but_words(files.numbers(again, suffix)) == but_words(path.read_bytes())
    assert written(again, width=100) == written(real[name], width=100)


def test_a_forger_who_renames_layer_and_tokens_gets_no_line_that_vouches_for_them(tmp_path: Path) -> None:
    """The weights still follow from q, k and v, and only that is said; what the head is of, `check` sees."""
    arrays = resealed.arrays_of(files.as_npz(made.head()))
    meta = json.loads(str(arrays["meta"]))
    meta["layer"] = meta["layer"] - 1
    for side in ("query_tokens", "key_tokens"):
        meta[side][1]["id"] = 7
    meta["provenance"]["digest"] = "sha256:" + 64 * "0"
    (tmp_path / "forged.npz").write_bytes(resealed.archive(arrays | {"meta": np.array(json.dumps(meta))}))
    forged = load(tmp_path / "forged.npz")
    assert forged.layer == made.head().layer - 1
    assert "✓ weights recomputed from the stored q, k, v; model, layer and tokens as stored, not checked" in (
        " ".join(forged.text(width=300).split())
    )


def test_numbers_of_a_measure_stand_once_in_an_npz_and_a_file_that_has_them_twice_is_read(
    tmp_path: Path,
) -> None:
    made_of, values = original("overview"), original("overview").scores["entropy"].values
    arrays = resealed.arrays_of(files.as_npz(made_of))
    assert [name for name in arrays if "entropy" in name and "values" in name] == []
    assert (arrays["entropy"] == values).all()
    meta = json.loads(str(arrays["meta"]))
    assert meta["measures"]["entropy"]["values"] == {"npz": "entropy"}
    meta["measures"]["entropy"]["values"] = {"npz": "measures entropy values"}
    twice = arrays | {"measures entropy values": values, "meta": np.array(json.dumps(meta))}
    (tmp_path / "twice.npz").write_bytes(resealed.archive(twice))
    again = load(tmp_path / "twice.npz")
    assert (again.scores["entropy"].values == values).all()
    assert again.text() == stored(tmp_path, "overview", ".npz").text()


Change = Callable[[dict[str, Any]], object]


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
    whole = cases_ablate.patched() if where == "total" else cases_ablate.together()
    told = json.loads(files.as_json(whole))
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
