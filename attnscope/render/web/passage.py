"""Markup of texts: tokens shaded by their numbers, linked words, and the opening sentence of a page.

It needs no script: notes on a token are tooltips, and the lines of a word are emphasised under the pointer.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from attnscope.render.kit.cells import settled
from attnscope.render.kit.numbers import weight
from attnscope.render.kit.palette import Scale as Weights
from attnscope.render.sheet.blocks import Linked, Passage, Tie
from attnscope.render.sheet.said import named
from attnscope.render.sheet.table import Scale
from attnscope.render.web.blocks import escape, shaded, strip
from attnscope.render.words import Said
from attnscope.results import Kind, Overview
from attnscope.results.base.evidence import LEAST, Opening
from attnscope.tokens import Tokens

_LONG = 110  # tokens: a text of more is set smaller, and a token of it is told with what is around it
_SHARES = Scale(0.0, 1.0)


def passage(block: Passage) -> str:
    """Markup of a passage: title, legend of its shades, and the text with its own blanks."""
    ends = (0.0, block.scale.top) if isinstance(block.scale, Weights) else (block.scale.low, block.scale.high)
    low, high = ("0" if each == 0 else block.form(each) for each in ends)
    told = f'<p class="told">{strip(block.scale, low, high)} {escape(block.says)}</p>'
    kind = "passage long" if len(block.tokens) > _LONG else "passage"
    return f'<h2>{escape(block.title)}</h2>{told}<p class="{kind}">{"".join(_pieces(block))}</p>'


def _pieces(block: Passage) -> Iterator[str]:
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
    value, called = float(block.values[position]), settled(block.tokens.labels[position])
    kinds = [each for each in (kind, "chosen" if position in block.chosen else "") if each]
    style, told = "", f"{called}: no number"
    if not math.isnan(value):
        kinds.append("shade")
        share = block.scale.shade(value) if isinstance(block.scale, Weights) else value
        paper = _SHARES if isinstance(block.scale, Weights) else block.scale
        style, told = f' style="{shaded(paper, share)}"', f"{called}: {block.form(value)} ({value:.7g})"
    return f'<span class="{" ".join(["w", *kinds])}"{style} title="{escape(told)}">{escape(text)}</span>'


_ROW, _BETWEEN, _LETTER, _EDGE = 22, 170, 8, 26  # pixels


def linked(block: Linked) -> str:
    """Markup of linked words: both columns, the lines, and their caption."""
    wide = [_LETTER * max(len(each) for each in (*words, side)) + 12 for words, side in _sides(block)]
    high = _ROW * max(len(block.left), len(block.right)) + _EDGE
    ends = wide[0], wide[0] + _BETWEEN
    heads = "".join(
        f'<text x="{x}" y="14" text-anchor="{anchor}" class="small">{escape(side)}</text>'
        for (_, side), x, anchor in zip(
            _sides(block), (ends[0] - 8, ends[1] + 8), ("end", "start"), strict=True
        )
    )
    groups = "".join((*_words(block, ends, 1), *_words(block, ends, 0)))
    told = f'<p class="told">{escape(block.says)}</p>' if block.says else ""
    aloud = "; ".join(tie.told for tie in block.ties)
    return (
        f'<h2>{escape(block.title)}</h2>{told}<svg width="{sum(wide) + _BETWEEN}" height="{high}" '
        f'class="linked" role="img" aria-label="{escape(aloud)}">{heads}{groups}</svg>'
    )


def _sides(block: Linked) -> tuple[tuple[tuple[str, ...], str], tuple[tuple[str, ...], str]]:
    return (block.left, block.sides[0]), (block.right, block.sides[1])


def _words(block: Linked, ends: tuple[int, int], side: int) -> Iterator[str]:
    words = (block.left, block.right)[side]
    anchor, x = (("end", ends[0] - 8), ("start", ends[1] + 8))[side]
    for i, word in enumerate(words):
        own = [tie for tie in block.ties if (tie.left, tie.right)[side] == i]
        lines = "".join(_line(block, tie, ends, hidden=side == 1) for tie in own)
        said = "; ".join(tie.told for tie in own) or f"{word}: no link"
        yield (
            f'<g class="w">{lines}<text x="{x}" y="{_down(block, side, i) + 5:.0f}" text-anchor="{anchor}">'
            f"{escape(word)}<title>{escape(said)}</title></text></g>"
        )


def _line(block: Linked, tie: Tie, ends: tuple[int, int], *, hidden: bool) -> str:
    path = f"M{ends[0]} {_down(block, 0, tie.left):.1f}L{ends[1]} {_down(block, 1, tie.right):.1f}"
    kinds = " ".join(
        each for each in ("tie", "only" if hidden else "", "broken" if tie.broken else "") if each
    )
    style = "" if hidden else f' style="opacity:{0.25 + 0.75 * tie.strength:.2f}"'
    title = "" if hidden else f"<title>{escape(tie.told)}</title>"
    return f'<path d="{path}" class="{kinds}"{style}>{title}</path>'


def _down(block: Linked, side: int, place: int) -> float:
    words = len((block.left, block.right)[side])
    return _EDGE + (place + 0.5) * _ROW * max(len(block.left), len(block.right)) / words


_AROUND = 4  # words around a token that are told, of a text of more tokens than `_LONG`


@dataclass(frozen=True)
class Told:
    """The opening of a page: its title, a sentence and its reasons as markup."""

    title: str
    sentence: str
    why: str


def told(overview: Overview, opening: Opening) -> Told:
    """Opening sentence about the strongest link and what else could explain it, or about the lack of one."""
    link, found, facts = opening.link, overview.tokens or overview, dict[str, object]()
    facts |= {"heads": overview.main.values.size, "controls": opening.controls, "least_evidence": LEAST}
    if link is None:
        say = Said("links", overview, facts)
        said, why = say("nothing"), f"Read beside it: {say('shuffled')}."
        return Told(said.partition(":")[0], escape(said), escape(why))
    queries, keys = found.query_tokens, found.key_tokens
    head = named(overview, (link.layer, link.head))
    query, key = (settled(side.names[at]) for side, at in ((queries, link.query), (keys, link.key)))
    behind = queries.names[link.query + 1 : link.query + 2] if overview.kind is Kind.CROSS else ()
    writes = "".join(f", where {escape(settled(each))} comes next," for each in behind)
    facts["head"] = f'<a href="#{head.replace(" ", "")}">{escape(head)}</a>'
    facts["query"] = f'<b class="asks">{escape(query)}</b>{writes}'
    facts["key"] = f'<b class="looked">{escape(key)}</b>'
    say = Said("links", overview, facts)
    less = [say("less", by, share) for by, share in link.explained]
    if link.controls is not None:  # which come first
        less[0] += f" ({say('shuffled')})"
    unread = " No shuffled texts were read." if link.controls is None else ""
    why = f"What else could explain it gives less: {'; '.join(less)}.{unread}"
    around = f'<span class="around">{_quoted(queries, link.query)} → {_quoted(keys, link.key)}</span>'
    around = around if max(len(queries), len(keys)) > _LONG else ""
    sentence = f"{say('link')}: {weight(link.weight)} of its attention."
    return Told(f"{query} → {key} · {head}", sentence, f"{around}{escape(why)}")


def _quoted(tokens: Tokens, at: int) -> str:
    token = tokens.items[at]
    source = tokens.texts[token.part]
    if token.span is None:
        return f"<b>{escape(token.name)}</b>"
    start, end = token.span
    before, after = source[:start].split()[-_AROUND:], source[end:].split()[:_AROUND]
    lead, follows = (
        ("" if source[start - 1 : start].strip() else " "),
        ("" if source[end : end + 1].strip() else " "),
    )
    body = source[start:end].strip()
    text = f"{escape(' '.join(before))}{lead}<b>{escape(body)}</b>{follows}{escape(' '.join(after))}"
    return f"<bdi>“… {text} …”</bdi>"
