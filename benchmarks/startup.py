"""What `attnscope --help` costs beside importing the two libraries that it cannot do without.

python benchmarks/startup.py
"""

import sys

from pairs import compare

compare(
    "attnscope --help against python -c 'import typer, rich'",
    [sys.executable, "-m", "attnscope", "--help"],
    [sys.executable, "-c", "import typer, rich"],
    runs=21,
)
