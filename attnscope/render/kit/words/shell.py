"""A word of a command that a person pastes into a shell: quoted as the shells of this system read it.

On Windows these are cmd and PowerShell, which know double quotes only; what they put in the place of `%NAME%`
or `$NAME` inside them cannot be kept from them by any quotes that both understand.
"""

import re
import shlex
import sys

_PLAIN = re.compile(r"[\w+=:./\\-]+", re.ASCII)


def word(text: str) -> str:
    """`text` as one word, quoted where it needs it."""
    if sys.platform != "win32":
        return shlex.quote(text)
    if _PLAIN.fullmatch(text):
        return text
    # the rule of Windows' own parser: backslashes count twice before a quote, and only there
    return '"' + re.sub(r'(\\*)("|\Z)', lambda at: at[1] * 2 + (r"\"" if at[2] else ""), text) + '"'
