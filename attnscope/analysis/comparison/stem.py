"""Other forms of a word: `banks` for `bank`. A rule of a few endings, not a grammar.

Two words are forms of one where, in small letters, one ending at most taken from each, the same is left, of
three letters at least. The endings are those of English plurals and verbs.
"""

from attnscope.tokens import Tokens

ENDINGS = (("'s", ""), ("’s", ""), ("ies", "y"), ("es", ""), ("s", ""), ("ed", ""), ("d", ""), ("ing", ""))
_SHORTEST = 3


def stems(word: str) -> set[str]:
    """What a word may be a form of: itself, and what is left without an ending."""
    small = word.lower()
    cut = {small.removesuffix(ending) + put for ending, put in ENDINGS if small.endswith(ending)}
    return {small} | {each for each in cut if len(each) >= _SHORTEST}


def forms_in(tokens: Tokens, word: str) -> list[int]:
    """Positions of the other forms of `word` among the tokens; none of a word that is there itself."""
    names = [token.text.strip() for token in tokens.items]
    if word in names or not word.isalpha():
        return []
    wanted = stems(word)
    return [i for i, name in enumerate(names) if name.isalpha() and wanted & stems(name)]
