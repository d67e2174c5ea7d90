"""A word of a command that a person pastes into a shell: quoted as the shells of this system read it.

What could steer a terminal stands as the escape that bash, zsh and ksh read within `$'...'`: the command is
harmless where it is shown, and means the same where it is pasted.

On Windows these are cmd and PowerShell, which know double quotes only; what they put in the place of `%NAME%`
or `$NAME` inside them cannot be kept from them by any quotes that both understand.
"""

import re
import shlex
import sys

from attnscope.printable import printable

_PLAIN = re.compile(r"[\w+=:./\\-]+", re.ASCII)


def word(text: str) -> str:
    """`text` as one word, quoted where it needs it."""
    if sys.platform != "win32":
        return shlex.quote(text) if printable(text) == text else f"$'{''.join(map(_escaped, text))}'"
    text = printable(text)
    if _PLAIN.fullmatch(text):
        return text
    # the rule of Windows' own parser: backslashes count twice before a quote, and only there
    return '"' + re.sub(r'(\\*)("|\Z)', lambda at: at[1] * 2 + (r"\"" if at[2] else ""), text) + '"'


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if printable(character) == character:
        return character
    # a name that is no UTF-8 holds its bytes as such surrogates; others come from files that hold any text
    a_byte = "\udc80" <= character <= "\udcff"
    written = character.encode("utf-8", "surrogateescape" if a_byte else "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in written)
