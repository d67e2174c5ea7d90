"""A text in a page as it reads: each token on the shade of its number, which is under the pointer."""

import math
from collections.abc import Iterator

from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.sheet.drawings import Passage
from attnscope.render.sheet.scale import Scale
from attnscope.render.web.blocks import escape, shaded, strip

_LONG = 110  # tokens of which a text is set smaller
_SHARES = Scale(0.0, 1.0)


def passage(block: Passage) -> str:
    """Title, what its shades mean, and the text with its own blanks."""
    ends = (0.0, block.scale.top) if isinstance(block.scale, Weights) else (block.scale.low, block.scale.high)
    low, high = ("0" if each == 0 else block.form(each) for each in ends)
    told = f'<p class="told">{strip(block.scale, low, high)} {escape(block.says)}</p>'
    kind = "passage long" if len(block.tokens) > _LONG else "passage"
    return f'<h2>{escape(block.title)}</h2>{told}<p class="{kind}">{"".join(_pieces(block))}</p>'


def _pieces(block: Passage) -> Iterator[str]:
    """The tokens, and between them what of their texts belongs to none."""
    tokens = block.tokens
    part, reached = 0, 0
    for position, token in enumerate(tokens.items):
        if token.span is None or token.part >= len(tokens.texts):
            yield f" {_token(block, position, token.name, 'added')} "
            continue
        if token.part != part:
            yield f"{escape(tokens.texts[part][reached:])} "
            part, reached = token.part, 0
        start, end = token.span
        yield escape(tokens.texts[part][reached:start])
        text = tokens.texts[part][max(start, reached) : end]
        own = text.lstrip()
        yield escape(text[: len(text) - len(own)])
        # of several tokens that spell one character the first has it
        yield _token(block, position, own or token.name, "" if own else "added")
        reached = max(reached, end)
    if tokens.texts:
        yield escape(tokens.texts[part][reached:])


def _token(block: Passage, position: int, text: str, kind: str) -> str:
    value, called = float(block.values[position]), block.tokens.labels[position]
    kinds = [each for each in (kind, "chosen" if position in block.chosen else "") if each]
    style, told = "", f"{called}: no number"
    if not math.isnan(value):
        kinds.append("shade")
        share = block.scale.shade(value) if isinstance(block.scale, Weights) else value
        paper = _SHARES if isinstance(block.scale, Weights) else block.scale
        style, told = f' style="{shaded(paper, share)}"', f"{called}: {block.form(value)} ({value:.7g})"
    return f'<span class="{" ".join(["w", *kinds])}"{style} title="{escape(told)}">{escape(text)}</span>'
