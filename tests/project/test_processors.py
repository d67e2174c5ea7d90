"""The program that runs the tests as on other processors: what it counts, writes down and fails for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processors import PARTS, ROOT, SETTINGS, Row, counted, main, row_of, table, with_table

REPORT = """<testsuites><testsuite>
<testcase classname="tests.capture.test_long" name="test_a"/>
<testcase classname="tests.capture.test_long" name="test_b"><failure>no</failure></testcase>
<testcase classname="tests.capture.test_long" name="test_c"><skipped>no card</skipped></testcase>
<testcase classname="tests.capture.test_long" name="test_d"><failure>no</failure></testcase>
<testcase classname="tests.capture.test_long" name="test_d"><error>nor afterwards</error></testcase>
</testsuite></testsuites>"""


def test_tests_are_counted_and_those_that_fail_named_once() -> None:
    row = counted("torch with AVX2 alone", 2, REPORT)
    failed = ("tests/capture/test_long.py::test_b", "tests/capture/test_long.py::test_d")
    assert row == Row("torch with AVX2 alone", 2, 1, 1, failed)
    assert str(row) == "| torch with AVX2 alone `ATEN_CPU_CAPABILITY=avx2` | 2 | 1 | 1 | 2 |"


def test_a_table_is_written_in_the_place_of_the_last_one() -> None:
    other = "<!-- processors: whole -->\n<!-- end of table -->\n"
    before = f"above\n{other}<!-- processors: gate -->\nold\n<!-- end of table -->\nbelow\n"
    rows = [Row("as it is", 1, 1234, 2, ())]
    made = with_table(before, "gate", table(rows))
    assert made.startswith(f"above\n{other}<!-- processors: gate -->\n20")
    assert made.endswith("| as it is | 1 | 1,234 | 2 | 0 |\n<!-- end of table -->\nbelow\n")
    assert "old" not in made
    assert "torch " in made
    with pytest.raises(AssertionError, match="no place for the table"):
        with_table(before, "fragile", "table")


def test_every_file_of_every_part_is_there_and_every_setting_known() -> None:
    for files, settings in PARTS.values():
        assert all((ROOT / each).exists() for each in files)
        assert {name for name, _ in settings} <= set(SETTINGS)


def test_a_setting_reaches_the_tests_and_what_fails_there_is_told(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    asked = tmp_path / "test_asked.py"
    asked.write_text(
        "import os, torch\n"
        "def test_as_told():\n"
        "    assert os.environ['OMP_NUM_THREADS'] == os.environ['ATTNSCOPE_TEST_THREADS'] == '2'\n"
        "    assert 'MKL_CBWR' not in os.environ\n"
        "def test_as_default():\n"
        "    assert torch.backends.cpu.get_cpu_capability() != 'DEFAULT'\n"
    )
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    row = row_of("torch without vector instructions", 2, [str(asked), "-c", os.devnull])
    assert (row.passed, row.skipped) == (1, 0)
    assert [each.partition("::")[2] for each in row.failed] == ["test_as_default"]
    monkeypatch.setitem(PARTS, "gate", ((str(asked), "-c", os.devnull), (("as it is", 2),)))
    assert main(["--part", "gate"]) == 0
    assert capsys.readouterr().out == "| as it is | 2 | 2 | 0 | 0 |\n"
    for others in (["--threads", "1"], ["--setting", "torch with AVX2 alone"]):
        with pytest.raises(SystemExit):
            main(["--part", "gate", *others])
        assert "the part gate has no such setting" in capsys.readouterr().err


def test_it_says_what_it_is_for() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.processors", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The tests that touch arithmetic" in told.stdout
