"""Freed memory that stays with the process: told by the pages that are mapped anew."""

import ctypes
import subprocess
import sys

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


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="another allocator"
)
def test_matrices_that_come_and_go_are_not_mapped_anew_where_freed_memory_is_kept() -> None:
    usual, kept = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], check=True, capture_output=True).stdout)
        for how in ("leave", "keep")
    )
    assert usual > 10_000
    assert kept < usual / 10
