"""A mask in the place of a token, so that what the model predicts there can be seen."""

from attnscope.errors import InputError
from attnscope.explore.state import Scene


def stands(scene: Scene, query: int) -> bool:
    """Whether the token is a mask."""
    return bool(scene.mask) and scene.queries.items[query].piece == scene.mask


def put(scene: Scene, query: int) -> str:
    """The text with a mask in the place of that token; `InputError` that says why there can be none."""
    if not scene.mask:
        raise InputError(f"{scene.model} fills in no blanks here: there is no mask to put in the text")
    token = scene.queries.items[query]
    name = scene.queries.named(query)
    if stands(scene, query):
        raise InputError(f"{name} is a blank already: e changes the sentence")
    if token.span is None or token.added:
        raise InputError(f"{name} is not of the text: go to a word of it")
    if token.part:
        raise InputError(f"{name} is of the second text: blanks are put into the first")
    text, (start, end) = scene.queries.texts[0], token.span
    start += len(text[start:end]) - len(text[start:end].lstrip())  # some tokens begin with the blank before
    return text[:start] + scene.mask + text[end:]
