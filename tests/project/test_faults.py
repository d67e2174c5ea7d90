"""The faults that tests have to see: `python -m tests.faults` plants them."""

import pytest
from faults import ROOT, Fault, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.file)
def test_a_fault_can_be_planted_and_has_tests(fault: Fault) -> None:
    text = (ROOT / "attnscope" / fault.file).read_text("utf-8")
    assert fault.planted(text) != text
    assert all((ROOT / test).exists() for test in fault.tests)


def test_a_text_that_has_gone_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times 'gone'"):
        Fault("sdpa.py", "gone", "", ()).planted("here")
