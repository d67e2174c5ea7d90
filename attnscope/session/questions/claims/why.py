"""Why one head looks from one token at another: which parts of the model its score comes from."""

from dataclasses import dataclass, replace

from attnscope.analysis import recompute_head
from attnscope.analysis.claims.why.explain import Question, explain
from attnscope.capture.faults import if_it_runs
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Why
from attnscope.session.choosing import Chosen
from attnscope.session.questions.claims.ablation import read_other
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.vocabulary import Kind

MOST = 1024  # tokens: what is known of a run is held until the sum is made


@dataclass(frozen=True)
class Link:
    """A query and a key by name, the key they are set against, and the text that parts are put from."""

    query: str | int
    key: str | int
    against: str | int | None = None
    patch_from: str | None = None


def why(reading: Reading, chosen: Chosen, link: Link) -> Why:
    """The score of the one chosen head for this link as a sum over parts, with what taking them away does.

    Raises `InputError` for several heads, a link that is not there, and a model whose sum is not exact.
    """
    layer, head = chosen.only()
    link = replace(link, **reading.filled(vars(link)))
    if reading.captured is not None:
        raise InputError("why reads a text at once: leave --generate out")
    with reading.listener.working("reading the attention"):
        captured = reading.capture(chosen)
    call = captured.call(layer, block=chosen.block)
    queries, keys = call.query_tokens, call.key_tokens
    if (longest := max(len(queries), len(keys))) > MOST:
        raise InputError(f"why holds all of a run at once: up to {MOST} tokens, here are {longest}")
    query, key, against = _places(link, queries, keys)
    _check(query, key, against, chosen.kind, queries, keys)
    other = None if link.patch_from is None else read_other(reading, link.patch_from)
    model, inputs = reading.model.module, reading.inputs
    with reading.listener.working("taking the score apart"), if_it_runs(model, inputs, reading.model.name):
        recomputed = recompute_head(captured, layer, head, block=chosen.block)
        found = explain(
            model,
            inputs,
            find_sites(model),
            call,
            Question(head, call.heads, query, key, against),
            None if other is None else other.inputs,
        )
    return Why(
        **vars(found),
        layer=layer,
        head=head,
        kind=call.kind,
        query_tokens=queries,
        key_tokens=keys,
        query=query,
        key=key,
        against=against,
        weight=float(recomputed.weights[query, key]),
        certificate=recomputed.certificate,
        provenance=captured.provenance,
        other_tokens=None if other is None else other.encoded.tokens,
        tower=captured.tower,
        notes=(*captured.notes(layer), *reading.notes),
    )


def check_link(chosen: Chosen, queries: Tokens | None, keys: Tokens, *, link: Link) -> None:
    """Raises `InputError` for what the tokenizer and the configuration show, before weights are read."""
    chosen.only()
    if queries is None:
        _places(replace(link, query=0), keys, keys)
    else:
        _check(*_places(link, queries, keys), chosen.kind, queries, keys)


def _places(link: Link, queries: Tokens, keys: Tokens) -> tuple[int, int, int | None]:
    """The positions of the query, the key and the other key; `InputError` for spans of several tokens."""
    single = "one query and one key have a score that can be taken apart, choose one of these"
    against = None if link.against is None else keys.span(link.against).one(single)
    return queries.span(link.query).one(single), keys.span(link.key).one(single), against


def _check(query: int, key: int, against: int | None, kind: Kind, queries: Tokens, keys: Tokens) -> None:
    if against == key:
        raise InputError(f"--against {keys.labels[key]} is what --to names: name another key")
    for each in (key, against):
        if kind is Kind.DECODER and each is not None and each > query:
            raise InputError(f"{queries.named(query)} may not look at {keys.named(each)}, which follows it")
