"""`python -m tests.accelerator cuda|mps COMMAND...`: attnscope where there are two emulated accelerators."""

import os
import sys

from . import backend

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in backend.KINDS:
        sys.exit(__doc__)
    os.environ |= backend.environment(sys.argv[1])
    os.execv(sys.executable, [sys.executable, "-m", "attnscope", *sys.argv[2:]])
