"""What a result shows: the sheet of a `finding` is made by `sheet` in `finding.py`, and so of every kind.

The module has the name that files give the kind, so that a kind is entered once, in `results.result.KINDS`.
It is loaded when a result of its kind is shown. Where a name has two parts the first is the module:
`picture-heads` stands with `picture`. A view of a head is shown as the head itself is.
"""

from dataclasses import replace
from importlib import import_module

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.sheet.guard import as_the_file_says, guarded
from attnscope.render.sheet.said import messages
from attnscope.render.sheet.sheet import Sheet, harmless
from attnscope.results import Check, Outline, Result
from attnscope.results.result import name_of
from attnscope.tokens import Tokens


def sheet_of(result: Result, focus: Focus = WHOLE) -> Sheet:
    """What a result shows of what is looked at, every text of it harmless."""
    name = name_of(type(result)).split("-")[0]
    module = import_module(f"{__name__}.{'head' if name == 'view' else name}")
    made: Sheet = module.sheet(result, focus)
    made = as_the_file_says(made) if result.from_file else made
    return harmless(guarded(replace(made, messages=_messages(result)), result.verdict))


def proof_of(result: Result) -> str:
    """What is proved of a result, in full."""
    return " · ".join(told for _, told in sheet_of(result, Focus(verbose=True)).proof)


def _messages(result: Result) -> str:
    sides = [getattr(result, name, None) for name in ("head", "overview", "tokens", "a", "b")]
    for each in (*(getattr(side, "head", None) for side in sides), *sides, result):
        for axis in ("key_tokens", "query_tokens", "tokens"):
            tokens = getattr(each, axis, None)
            if isinstance(tokens, Tokens) and tokens.sections:
                return messages(tokens)
    return ""


NO_PICTURE: dict[type, str] = {
    Outline: "an outline of a model has no picture: it is a table of layers",
    Check: "a check of a stored run has no picture: it is a line for each head",
}
