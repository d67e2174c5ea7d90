"""An outline on the screen and as JSON, without a model."""

import json
import re
from dataclasses import replace

import cases_outline
import pytest
from golden_text import IN_FULL, assert_golden, printed
from made_outlines import decoder, layer, outline, sight

from attnscope.render import files
from attnscope.render.kit.numbers import amount, roughly
from attnscope.render.sheets import sheet_of
from attnscope.render.sheets.outline import range_words, speed_words, time_words
from attnscope.render.terminal import sheet as terminal
from attnscope.results import Outline


def shown(result: Outline, width: int) -> str:
    return "".join(printed(part, width) for part in terminal.screen(result, width, IN_FULL))


@pytest.mark.parametrize("width", [80, 140])
def test_an_outline_reads_like_this(width: int) -> None:
    assert_golden(f"outline.{width}", shown(outline(), width))


def test_no_markup_or_control_character_of_a_model_takes_effect() -> None:
    tower = replace(decoder(), pattern="[bold]a[/bold]\x1b[31m.*")
    text = shown(replace(outline(), towers=(tower,), model="x\x1b[2Jy"), 100)
    assert "[bold]a[/bold]" in text
    assert "\x1b" not in text


def test_equal_layers_share_a_row_and_one_that_differs_in_anything_has_its_own() -> None:
    def rows(**changes: object) -> int:
        tower = replace(decoder(), layers=(layer(0), layer(1), layer(2, **changes)))
        text = shown(replace(outline(), towers=(tower,), cost=None, gaps=()), 140)
        return sum(line.startswith(("0", "2 ")) for line in text.splitlines())

    assert rows() == 1
    for change in ({"heads": 8}, {"window": 9}, {"softcap": 1.0}, {"sinks": True}, {"scale": 1.0}):
        assert rows(**change) == 2, change


def test_ranges_of_layers() -> None:
    assert range_words([0]) == "0"
    assert range_words([2, 0, 1]) == "0-2"
    assert range_words([0, 2, 3, 4, 9]) == "0, 2-4, 9"
    assert range_words([1, 3, 5, 7]) == "1-7 by 2"
    assert range_words([1, 3]) == "1, 3"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_600, "1.00 MB"),
        (3e12, "3.00 TB"),
    ],
)
def test_amounts_have_three_digits(value: float, words: str) -> None:
    assert amount(value, "B") == words


def test_counts_and_times_are_in_words() -> None:
    assert [roughly(n) for n in (7, 624_000, 109_482_240, 6.7e11)] == [
        "7",
        "624 thousand",
        "109 million",
        "670 billion",
    ]
    assert [time_words(s) for s in (0.0035, 0.42, 17.66, 400, 9000)] == [
        "3.5 ms",
        "420 ms",
        "17.7 s",
        "7 min",
        "2.5 h",
    ]


def test_a_time_is_said_with_the_speeds_behind_it() -> None:
    assert re.match(r"about 15.4 s .* 80.0 GFLOP/s, in float64 20.0 GFLOP/s", speed_words(15.43, 80e9, 20e9))


def columns(result: Outline, name: str) -> list[str]:
    return [
        value
        for block in sheet_of(result).every
        if block.of == "layers"
        for value in block.table[name].values
    ]


def test_positions_and_special_features_are_named() -> None:
    odd = cases_outline.odd()
    assert columns(odd, "positions")[:2] == ["learned (64) + rotary 4, base 10,000", "none of its own"]
    assert columns(odd, "besides")[:2] == ["window 4, chunks of 6, cap 2.5, sinks, scale 1, 3 blocks", "-"]
    assert columns(replace(outline(), towers=(sight(),)), "besides")[-1] == "not run"
    assert (
        columns(cases_outline.EXAMPLES["a window of an encoder"](), "besides")[0] == "window 3 to either side"
    )


def test_what_is_stored_is_told_with_what_is_missing() -> None:
    some, nothing = (
        sheet_of(cases_outline.EXAMPLES[name]()).notes[0]
        for name in ("some files are not here", "nothing stored")
    )
    assert some.endswith("; stored on this machine: size not told, 2 files (1 not here)")
    assert nothing.endswith("; there is nothing")


def test_the_document_is_strict_json_with_every_field() -> None:
    told = json.loads(files.as_json(outline()))
    assert told["schema"] == "attnscope.outline/2"
    gap = {"stack": "model.layers", "layers": [4, 5], "module_class": "SomeMixer"}
    assert told["without_attention"] == [gap]
    assert told["storage"]["shards"]["model-00002-of-00003.safetensors"] == 4_100_000_000
    assert len(told["layers"]) == 14
    assert told["layers"][0]["positions"] == [
        {"scheme": "rotary", "size": None, "dims": 32, "base": 500000.0, "variant": "yarn"}
    ]
    assert told["layers"][-1]["seen"] is False
    assert not {"seconds", "rate_float32", "rate_float64"} & set(told["cost"])
    assert told["cost"]["flops"] == 1_234_000_000_000 + 11 * 20_160_000
