"""What `attnscope --help` costs beside importing the two libraries that it cannot do without.

python benchmarks/startup.py
"""

import sys

from pairs import ATTNSCOPE, compare

compare(
    "attnscope --help against python -c 'import typer, rich'",
    [ATTNSCOPE, "--help"],
    [sys.executable, "-c", "import typer, rich"],
    runs=21,
)
