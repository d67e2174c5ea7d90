"""An error that the model makes by itself is the input's; one that only watching makes stays a bug."""

import pytest
from families import ids, sharp

from attnscope.capture import Selection, record
from attnscope.capture.running import if_it_runs
from attnscope.errors import InputError


def only_watched() -> None:
    raise ZeroDivisionError


def test_an_input_that_the_model_cannot_run_on_is_one_line() -> None:
    model = sharp("bert")
    too_long = ids(80)
    with (
        pytest.raises(InputError, match=r"^tiny cannot run on this input: .*") as raised,
        if_it_runs(model, too_long, "tiny"),
    ):
        record(model, too_long)
    assert "\n" not in str(raised.value)


def test_an_error_that_only_the_watched_run_makes_passes_through() -> None:
    model = sharp("bert")
    with pytest.raises(ZeroDivisionError), if_it_runs(model, ids(), "tiny"):
        only_watched()


def test_an_error_of_our_own_is_left_as_it_is() -> None:
    model = sharp("bert")
    with pytest.raises(InputError, match="no layer 7"), if_it_runs(model, ids(), "tiny"):
        record(model, ids(), Selection(layers=[7]))
