"""Scripts that attnscope wrote, run where attnscope cannot be imported: many of them in one process."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_RUNS_THEM = """
import contextlib, io, json, runpy, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "attnscope":
            raise ImportError("attnscope cannot be imported here")

sys.meta_path.insert(0, Refusing())
told = {}
for script, *options in json.loads(sys.argv[1]):
    sys.argv, out, code = [script, *options], io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as ended:
            code = ended.code
    told[script] = code, out.getvalue()
print(json.dumps(told))
"""


class Ended(NamedTuple):
    """How a script ended, and what it printed."""

    code: int | None
    said: str

    @property
    def verdict(self) -> str:
        return self.said.rstrip().rpartition("\n")[2]


def run_again(scripts: Mapping[Path, Sequence[str]]) -> dict[Path, Ended]:
    """All of these scripts with their options, in an isolated interpreter that refuses attnscope."""
    asked = json.dumps([[str(script), *options] for script, options in scripts.items()])
    command = [sys.executable, "-I", "-c", _RUNS_THEM, asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    return {Path(script): Ended(*told) for script, told in json.loads(done.stdout).items()}
