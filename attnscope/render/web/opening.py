"""The sentence that a page of heads opens on: the link that says most of the text, and what explains it."""

from dataclasses import dataclass

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import counted, weight
from attnscope.render.sheet.said import named
from attnscope.render.web.blocks import escape
from attnscope.results import Kind, Overview
from attnscope.results.base.evidence import LEAST, Opening
from attnscope.tokens import Tokens

_AROUND, _LONG = 4, 110  # words around a token that are told, of a text of more tokens than so many


@dataclass(frozen=True)
class Told:
    """What a page says first: its title, a sentence as markup, and as markup what it rests on."""

    title: str
    sentence: str
    why: str


def told(overview: Overview, opening: Opening) -> Told:
    """What the link is, with its head, and what else gives less; or that no link is worth opening on."""
    link, found = opening.link, overview.tokens or overview
    heads = counted(overview.main.values.size, "head")
    if link is None:
        said = f"No link between two words stands out in any of {heads}."
        why = f"No weight is {weight(LEAST)} above what {_explained(opening)} would explain."
        return Told(said, escape(said), escape(why))
    queries, keys = found.query_tokens, found.key_tokens
    head = named(overview, (link.layer, link.head))
    query, key = (settled(side.names[at]) for side, at in ((queries, link.query), (keys, link.key)))
    crosses = overview.kind is Kind.CROSS
    behind = queries.names[link.query + 1 : link.query + 2] if crosses else ()
    writes = "".join(f", where {escape(settled(each))} comes next," for each in behind)
    address = f"#{head.replace(' ', '')}"
    sentence = (
        f'In head <a href="{address}">{escape(head)}</a>, <b class="asks">{escape(query)}</b>{writes} gives '
        f'<b class="looked">{escape(key)}</b> {weight(link.weight)} of its attention.'
    )
    less = []
    if link.controls is not None:
        stays = " and what the decoder reads kept" if crosses else ""
        texts = counted(opening.controls, "shuffled text")
        less.append(
            f"at most {weight(link.controls)} at the same places in {texts}, your words shuffled{stays}"
        )
    if link.distance is not None:
        less.append(f"{weight(link.distance)} at the same distance elsewhere in the text")
    less.append(f"{weight(link.others)} from the other words to this one")
    less.append(f"{weight(link.even)} if all were alike")
    why = f"What else could explain it gives less: {'; '.join(less)}."
    if link.controls is None:
        why += " No shuffled texts were read."
    around = "" if max(len(queries), len(keys)) <= _LONG else _around(queries, link.query, keys, link.key)
    return Told(f"{query} → {key} · {head}", sentence, f"{around}{escape(why)}")


def _explained(opening: Opening) -> str:
    controls = f"{counted(opening.controls, 'shuffled text')}, " if opening.controls else ""
    return f"{controls}the same distance, the same key or what each would get if all got the same"


def _around(queries: Tokens, query: int, keys: Tokens, key: int) -> str:
    return f'<span class="around">{_quoted(queries, query)} → {_quoted(keys, key)}</span>'


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
