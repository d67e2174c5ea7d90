"""The vector of one token, all of its dimensions; an output with the weights that it is mixed by."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.kit.cells import DIM, HEADING, cell_style, cell_texts, line, widest
from attnscope.render.kit.labels import right, settled
from attnscope.render.kit.numbers import counted, short, weight_text
from attnscope.render.kit.stage import Panel
from attnscope.render.terminal.strongest import descending
from attnscope.results import HeadWeights

_MOST_TERMS = 5
_NAMES = {"q": "query", "k": "key", "v": "value", "output": "output"}


def vector(head: HeadWeights, shown: Panel, position: int, width: int) -> RenderableType:
    """The one row of `shown`, of the token at `position`; a line begins with the number of a dimension."""
    name = settled(shown.row_tokens.named(0))
    title = (f"{_NAMES[shown.show]} vector of ", DIM), (name, HEADING)
    if not shown.answered[0]:
        return Group(line(*title, f": it has {shown.unanswered}"))
    values = shown.values[0]
    told = f"{counted(len(values), 'dimension')} · norm {short(float((values**2).sum() ** 0.5))}"
    texts = cell_texts(shown)
    cell, margin = widest(texts) + 1, len(str(len(values))) + 1
    fitting = max((width - margin) // cell, 1)
    each = 10 if fitting >= 10 else 5 if fitting >= 5 else fitting
    lines = [line(*title), Text(told, style=DIM)]
    for first in range(0, len(values), each):
        styled = [
            (right(text, cell), cell_style(shown, float(value)))
            for text, value in zip(texts[0][first : first + each], values[first : first + each], strict=True)
        ]
        lines.append(line((right(str(first), margin - 1) + " ", DIM), *styled))
    if shown.show == "output":
        lines.append(Text(mixed_words(head, position)))
    return Group(*lines)


def mixed_words(head: HeadWeights, query: int) -> str:
    """`output = .980 v(8 opened) + .007 v(9 .) + 9 more`: weights V (Vaswani et al. 2017, equation 1)."""
    weights, keys = head.weights[query], head.key_tokens
    ranked = [key for key in descending(weights) if head.allowed[query, key]]
    named = [f"{weight_text(float(weights[key]), 3)} v({settled(keys.named(key))})" for key in ranked]
    more = [f"{len(named) - _MOST_TERMS} more"] if len(named) > _MOST_TERMS else []
    return f"output = {' + '.join([*named[:_MOST_TERMS], *more])}"
