"""How the program starts faster than what it is made of: for the process of the command, and for no other.

    deferred, standing   modules that are imported and not needed, loaded when something asks for them
    unneeded             which these are
    table                transformers' table of its own modules, kept on disk
    collector            garbage is looked for where there can be some

Each is off by a word in the environment, and where anything is not as expected Python's ordinary import is
what happens. Nothing here is in force where attnscope is a library: only who is the process calls `hasten`.
"""

import os
import sys

EAGER_IMPORTS = "ATTNSCOPE_EAGER_IMPORTS"  # set to anything: every module is loaded where it is imported
FRESH_TABLE = "ATTNSCOPE_FRESH_TABLE"  # set to anything: transformers makes its table of modules itself


def hasten() -> None:
    """Make this process, which is the command's own, start faster from here on."""
    from attnscope.startup.collector import look_less_often

    look_less_often()
    if not os.environ.get(EAGER_IMPORTS):
        from attnscope.startup.deferred import PuttingOff
        from attnscope.startup.unneeded import UNNEEDED

        sys.meta_path.insert(0, PuttingOff(UNNEEDED))
    if not os.environ.get(FRESH_TABLE):
        from attnscope.startup import table
        from attnscope.startup.finding import WhenImported

        sys.meta_path.insert(0, WhenImported(table.MODULE, table.keep_table))
