"""Text from outside, made harmless: whatever a name, a token or a message holds, it steers no terminal.

Every door by which text leaves the program passes it through `printable`: errors, the lines and consoles of
the program, sheets, the letters of a figure, the escape of a page, the cells of a table.
"""

import unicodedata

_STEERING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # the categories of Unicode
VISIBLE = {"\n": "↵", "\r": "␍", "\t": "⇥"}
LEFT_TO_RIGHT = "\u200e"  # which we ourselves put behind words that run the other way


def printable(text: str, kept: str = "") -> str:
    """`text` without anything that could steer a terminal: control and format characters become escapes.

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
    """Whether a terminal could do anything else with it than show it: the one measure for screen and JSON."""
    harmless_format = character in "\u200c\u200d"
    return unicodedata.category(character) in _STEERING and not harmless_format
