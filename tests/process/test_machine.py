"""Freed memory that stays with the process: told by the pages that are mapped anew, and by what it holds."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = """
import resource, sys
import numpy as np
from attnscope.process.machine import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        held = [np.ones(1_500_000) for _ in range(9)]  # 12 MB each, all freed at once
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "keep":
    keep_freed(2**28)
faults()
print(faults())
"""

LEFT = """
import sys
from pathlib import Path
import numpy as np
import attnscope

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def left():
    before = resident()
    held = [np.ones(1_500_000) for _ in range(9)]
    del held
    return resident() - before

text = Path(sys.argv[1])
text.write_text("The door opened.")
if sys.argv[2] == "kept":
    from attnscope.process.machine import keep_freed
    keep_freed(2**28)
else:
    attnscope.corpus(text, "demo", measures="same", workers=0, run=text.parent / "run")
print(left())
"""

of_glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="another allocator"
)


@of_glibc
def test_matrices_that_come_and_go_are_not_mapped_anew_where_freed_memory_is_kept() -> None:
    usual, kept = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True).stdout)
        for how in ("leave", "keep")
    )
    assert usual > 10_000
    assert kept < usual / 10


@of_glibc
def test_a_process_that_measured_a_corpus_holds_no_more_freed_memory_than_others(tmp_path: Path) -> None:
    kept, lent = (
        int(
            subprocess.run(
                [sys.executable, "-c", LEFT, str(tmp_path / f"{how}.txt"), how],
                check=True,
                capture_output=True,
            ).stdout
        )
        for how in ("kept", "lent")
    )
    assert kept > 9 * 12_000_000 - 2**20
    assert lent < 2**26 + 2**20
