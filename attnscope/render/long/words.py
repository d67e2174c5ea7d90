"""What is said beside a long head, and its blocks as a panel like any other."""

from dataclasses import replace

import numpy as np

from attnscope.render.kit.numbers import counted
from attnscope.render.kit.stage import Panel
from attnscope.render.kit.words.header import CROSS_ROWS, written_words
from attnscope.results import Kind, LongHead
from attnscope.tokens import Token, Tokens, printable
from attnscope.vocabulary import Pool, Scaling

_EXCERPT = 300  # characters of a text that is far too long to be printed


def panel_of(result: LongHead, asked: Scaling = Scaling.AUTO) -> Panel:
    """The blocks as rows and columns; those of one pair by their tokens, others by where they begin."""
    sides = [
        _side(tokens, first, size, step)
        for tokens, first, size, step in zip(
            (result.query_tokens, result.key_tokens), result.first, result.size, result.steps, strict=True
        )
    ]
    cells = result.cells
    return Panel(
        show="weights",
        row_word="query",
        row_tokens=sides[0],
        column_tokens=sides[1],
        values=cells,
        visible=~np.isnan(cells),
        answered=np.ones(len(cells), bool),
        scaling=asked,
    )


def _side(tokens: Tokens, first: int, size: int, step: int) -> Tokens:
    starts = tuple(range(first, first + size, step))
    if step == 1:
        return replace(tokens.only(starts), numbers=starts)
    return Tokens((), tuple(Token(-1, "", "", None, None) for _ in starts), numbers=starts)


def block_words(result: LongHead) -> str:
    """What a cell is: one weight, or the mean or the largest of many."""
    if result.exact:
        return "every cell is one weight"
    what = "the largest weight" if result.pool is Pool.MAX else "the mean weight"
    sizes = [counted(step, noun) for step, noun in zip(result.steps, ("query", "key"), strict=True)]
    return f"every cell is {what} of {' x '.join(sizes)}"


def bar_words(result: LongHead) -> str:
    """The same for a colour bar."""
    if result.exact:
        return "attention weight"
    size = " x ".join(map(str, result.steps))
    return f"{'largest' if result.pool is Pool.MAX else 'mean'} weight of {size}"


def window_words(result: LongHead) -> str:
    """Which queries and keys are shown: `queries 1000-1063 of 32,768, keys 900-1100 of 32,768`."""
    sides = ("queries", len(result.query_tokens)), ("keys", len(result.key_tokens))
    if result.whole:
        return " x ".join(f"{count:,} {noun}" for noun, count in sides)
    return ", ".join(
        f"{noun} {first}-{first + size - 1} of {count:,}"
        for (noun, count), first, size in zip(sides, result.first, result.size, strict=True)
    )


def excerpt(tokens: Tokens) -> str:
    """The beginning of the text, and how long it is."""
    text = tokens.sentence
    if not text:
        return ""
    cut = printable(text[:_EXCERPT].strip())
    return f"“{cut}”" if len(text) <= _EXCERPT else f"“{cut}…”"


def remarks(result: LongHead) -> list[str]:
    """What is odd about the input or the head, one phrase each."""
    found = [CROSS_ROWS] if result.kind is Kind.CROSS else []
    if origin := written_words(result.query_tokens):
        found.append(origin)
    if result.blocks > 1:
        found.append(f"block {result.block} of {result.blocks} (--block)")
    return [*found, *result.notes]


def entropy_words(result: LongHead) -> str:
    """The mean entropy of all queries that have a key."""
    there = result.entropy[~np.isnan(result.entropy)]
    return f"entropy of a query {there.mean():.2f} nats on average" if there.size else ""
