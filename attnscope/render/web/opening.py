"""The sentence that a page of heads opens on: the link that says most of the text, and what explains it."""

from dataclasses import dataclass

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import weight
from attnscope.render.sheet.said import named
from attnscope.render.sheets.links import explaining
from attnscope.render.web.blocks import escape
from attnscope.render.words import Said
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
    less = [say("less", by, share) for by, share in explaining(link)]
    if link.controls is not None:  # which come first
        less[0] += f" ({say('shuffled')})"
    unread = " No shuffled texts were read." if link.controls is None else ""
    why = f"What else could explain it gives less: {'; '.join(less)}.{unread}"
    around = "" if max(len(queries), len(keys)) <= _LONG else _around(queries, link.query, keys, link.key)
    sentence = f"{say('link')}: {weight(link.weight)} of its attention."
    return Told(f"{query} → {key} · {head}", sentence, f"{around}{escape(why)}")


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
