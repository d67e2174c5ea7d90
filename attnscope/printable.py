"""Escapes text from outside (names, tokens, messages) so that it cannot control a terminal.

All text that leaves the program passes `printable`: errors, lines and consoles, sheets, letters of a figure,
the escape of a page, cells of a table.

Words of a command to paste into a shell are quoted for this system's shells: control characters become
escapes within `$'...'`, which bash, zsh and ksh read. cmd and PowerShell on Windows know double quotes only;
no quotes that both understand keep them from replacing `%NAME%` or `$NAME` inside.
"""

import re
import shlex
import sys
import unicodedata

_STEERING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # the categories of Unicode
VISIBLE = {"\n": "↵", "\r": "␍", "\t": "⇥"}
_PLAIN = re.compile(r"[\w+=:./\\-]+", re.ASCII)  # a word that no shell takes for anything else
LEFT_TO_RIGHT = "\u200e"  # which we ourselves put behind words that run the other way


def printable(text: str, kept: str = "") -> str:
    """`text` with control and format characters escaped.

    Zero-width joiners and variation selectors stay, since emoji and several scripts are spelled with them,
    and so does what is `kept`. What is printable already is left as it is.
    """
    if text.isprintable():
        return text
    return "".join(each if each in kept else _visible_character(each) for each in text)


def _visible_character(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    if steers(character):
        return ascii(character)[1:-1]
    return character


def steers(character: str) -> bool:
    """Whether the character could control a terminal (Unicode control, format, private and the like)."""
    harmless_format = character in "\u200c\u200d"
    return unicodedata.category(character) in _STEERING and not harmless_format


class FileWord(str):
    """A command word that names a file; stored by its file name, without the folder."""

    @property
    def stored(self) -> str:
        return self.replace("\\", "/").rstrip("/").rpartition("/")[2]


def word(text: str) -> str:
    """`text` as one shell word, quoted if needed."""
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
