"""Attention calls: the inputs and outputs of one attention layer, and the captured calls of a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.arithmetic import Operands
from attnscope.errors import InputError, listed
from attnscope.reference import exact
from attnscope.results import Kind, Provenance, Reach, Route
from attnscope.tokens import Tokens
from attnscope.vocabulary import Standing

MIXED = "tokens are mixed with others before its attention, by no attention"


@dataclass(frozen=True, eq=False)
class Term:
    """A term that the model adds to the scaled scores, with a name."""

    name: str
    values: Float[Tensor, "#head query key"]


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One attention of one layer for one input: the tensors its kernel received and returned.

    `module` and `call` (how often that module had been called before) identify it. A layer that attends in
    separate blocks (windows of a picture, one picture after the other, two halves of V) makes one of these
    for each `block`. K and V have one entry per key head, not repeated. `terms` are added to the scores;
    `remainder` is any other addition that was only seen as a difference, and proves nothing. `output` and
    `weights` are the model's own: weights by head, for the heads asked for. `reweighted` are the weights
    that multiply the values, by head, where the model changes those of its softmax; `unread` counts
    softmaxes of the layer that could not be read. `reservation` names anything else between these tensors
    and the layer's result, mostly nothing. `epsilon` is the machine epsilon of the products, `sums` that of
    their sums. `unrotated_k` is the key before its rotary position, if known; it only serves to prove that a
    missing rotation would be noticed. `standing` says whether positions were seen to be the tokens they are
    labelled with, and `tried` how that was tested where not every token was told from every other; `reach`
    is by head the effect of its output, None where no model was asked. `projection` takes the heads' outputs
    to the hidden state, and `value_projection` makes the values from the layer's input, up to an offset;
    both only where asked for and existing, and perhaps the model's own memory. Tensors are detached and all
    on one device.
    """

    module: str
    call: int
    layer: int
    kind: Kind
    query_tokens: Tokens
    key_tokens: Tokens
    q: Float[Tensor, "head query dim"]
    k: Float[Tensor, "kv_head key dim"]
    v: Float[Tensor, "kv_head key value_dim"]
    scale: float
    softcap: float | None
    terms: tuple[Term, ...]
    allowed: Bool[Tensor, "#head query key"] | None
    sinks: Float[Tensor, "head ..."] | None
    window: int | None
    output: Float[Tensor, "head query value_dim"]
    weights: Mapping[int, Float[Tensor, "query key"]]
    epsilon: float
    precision: str
    sums: float = torch.finfo(torch.float32).eps
    unrotated_k: Float[Tensor, "kv_head key dim"] | None = field(default=None)
    remainder: Float[Tensor, "#head query key"] | None = None
    reweighted: Mapping[int, Float[Tensor, "query key"]] | None = None
    route: Route = Route.TAKEOVER
    unread: int = 0
    reservation: str = ""
    tower: str = ""
    block: int = 0
    standing: Standing = Standing.UNKNOWN
    tried: str = ""
    reach: Mapping[int, Reach] | None = None
    projection: Float[Tensor, "head value_dim hidden"] | None = None
    value_projection: Float[Tensor, "kv_head read value_dim"] | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """Notes on ways other than attention by which tokens mix in this layer."""
        mixed = [MIXED] if self.standing is Standing.MIXED else []
        return tuple(dict.fromkeys([*mixed, *(r.beside for r in (self.reach or {}).values() if r.beside)]))

    @property
    def bias(self) -> Float[Tensor, "#head query key"] | None:
        """The sum of all terms added to the scaled scores, in float64; None without any."""
        added = [exact(term.values) for term in self.terms]
        added += [] if self.remainder is None else [exact(self.remainder)]
        return sum(added[1:], added[0]) if added else None

    def at(self, device: torch.device) -> "AttentionCall":
        """A copy of the call with its tensors on `device`."""
        if self.q.device == device:
            return self
        return replace(self, **{name: _at(value, device) for name, value in vars(self).items()})

    def rows(self, queries: Sequence[int]) -> "AttentionCall":
        """The call with only these queries, and all keys.

        The window is left out: it tells distances, and where these queries stand among all is not known then.
        """
        chosen = list(queries)

        def cut(values: Tensor | None) -> Any:
            return None if values is None else values[:, chosen]

        by_query = self.sinks is not None and self.sinks.ndim > 1 and self.sinks.shape[1] == self.q.shape[1]
        return replace(
            self,
            query_tokens=self.query_tokens.only(chosen),
            q=cut(self.q),
            terms=tuple(Term(term.name, cut(term.values)) for term in self.terms),
            allowed=cut(self.allowed),
            sinks=cut(self.sinks) if by_query else self.sinks,
            window=None,
            output=cut(self.output),
            weights={head: each[chosen] for head, each in self.weights.items()},
            remainder=cut(self.remainder),
            reweighted=self.reweighted and {head: each[chosen] for head, each in self.reweighted.items()},
        )

    @property
    def heads(self) -> int:
        return self.q.shape[0]

    @property
    def key_heads(self) -> int:
        return self.k.shape[0]

    def key_head(self, head: int) -> int:
        """The key/value head that query head `head` reads."""
        return head // (self.heads // self.key_heads)

    def operands(self, head: int) -> Operands:
        """The operands of head `head` in float64, with a head axis of length 1.

        Raises `InputError` when there is no such head.
        """
        return self.operands_of((head,))

    def operands_of(self, heads: Sequence[int]) -> Operands:
        """The operands of `heads` in float64, with keys and values repeated for each.

        What is one for all heads stays one. Raises `InputError` when there is no such head.
        """
        for head in heads:
            if not 0 <= head < self.heads:
                raise InputError(f"no head {head} in layer {self.layer}: heads are 0-{self.heads - 1}")
        shared = [self.key_head(head) for head in heads]
        added = list(self._added(heads).values())
        return Operands(
            q=exact(of_heads(self.q, heads)),
            k=exact(of_heads(self.k, shared)),
            v=exact(of_heads(self.v, shared)),
            scale=self.scale,
            softcap=self.softcap,
            bias=sum(added[1:], added[0]) if added else None,
            allowed=None if self.allowed is None else _of_those(self.allowed, heads),
            sinks=None if self.sinks is None else exact(of_heads(self.sinks, heads)),
        )

    def added(self, head: int) -> dict[str, Float[Tensor, "query key"]]:
        """The terms added to the scaled scores of head `head`, by name, in float64, as full matrices."""
        return {name: values[0] for name, values in self._added((head,)).items()}

    def _added(self, heads: Sequence[int]) -> dict[str, Float[Tensor, "#head query key"]]:
        shape = (-1, self.q.shape[1], self.k.shape[1])
        named = {term.name: term.values for term in self.terms}
        named |= {} if self.remainder is None else {"remainder": self.remainder}
        return {name: exact(_of_those(values, heads)).expand(shape) for name, values in named.items()}

    def allowed_matrix(self, head: int) -> Bool[Tensor, "query key"]:
        """The mask of head `head` as a full matrix, True where a query may attend."""
        if self.allowed is None:
            return self.q.new_ones(self.q.shape[1], self.k.shape[1], dtype=torch.bool)
        return _of_those(self.allowed, (head,))[0].expand(self.q.shape[1], self.k.shape[1])


def _at(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Term):
        return Term(value.name, value.values.to(device))
    if isinstance(value, Mapping):
        return {key: _at(each, device) for key, each in value.items()}
    return tuple(_at(each, device) for each in value) if type(value) is tuple else value


def _of_those(shared: Tensor, heads: Sequence[int]) -> Tensor:
    """The entries of some heads, where a head axis of length 1 serves all."""
    return of_heads(shared, heads) if shared.shape[0] > 1 else shared


def of_heads(every: Tensor, heads: Sequence[int]) -> Tensor:
    """The entries of some heads, as a view where they are consecutive."""
    first = heads[0]
    follow = list(heads) == list(range(first, first + len(heads)))
    return every[first : first + len(heads)] if follow else every[list(heads)]


@dataclass(frozen=True, eq=False)
class Capture:
    """The attention calls of one run, in order of their layers, with their provenance.

    `layers` counts the model's attention layers of this kind, captured or not; `tower` is the part of the
    model that they are in, "" where the kind tells.
    """

    calls: tuple[AttentionCall, ...]
    layers: int
    provenance: Provenance
    tower: str = ""

    def call(self, layer: int, block: int = 0) -> AttentionCall:
        """The call of block `block` of one layer; `InputError` when it was not captured."""
        mine = [call for call in self.calls if call.layer == layer]
        if not mine:
            captured = ", ".join(str(each) for each in dict.fromkeys(call.layer for call in self.calls))
            raise InputError(f"layer {layer} was not captured: captured are {captured}")
        if not -len(mine) <= block < len(mine):
            raise InputError(f"no block {block} in layer {layer}: blocks are {listed(range(len(mine)))}")
        return mine[block]

    def blocks(self, layer: int) -> int:
        """The number of separate attentions that the layer makes for one input."""
        return sum(call.layer == layer for call in self.calls)

    def check_in_place(self, what: str) -> None:
        """Raises `InputError`, naming `what`, where rows of a layer are not its tokens in order."""
        check_in_place((call.layer for call in self.calls if call.standing is Standing.OTHER), what)

    def notes(self, layer: int) -> tuple[str, ...]:
        """Notes on a layer: its rows are not the tokens in order, or its blocks leave tokens out."""
        mine = [call for call in self.calls if call.layer == layer]
        if mine and mine[0].standing is Standing.OTHER:
            return (f"{_not_in_place([layer])}: numbered",)
        read, tokens = sum(call.q.shape[1] for call in mine), len(self.provenance.token_ids)
        if len(mine) < 2 or mine[0].kind is not Kind.ENCODER or read >= tokens:
            return ()
        return (f"its {len(mine)} blocks hold {read} queries of {tokens} tokens: the others were not seen",)

    def remarks(self, layers: Iterable[int]) -> tuple[str, ...]:
        """Notes on several layers, with those about their heads."""
        wanted = [*layers]
        notes = dict.fromkeys(note for layer in wanted for note in self.notes(layer))
        seen = ((call.layer, each) for call in self.calls if call.layer in wanted for each in call.beside)
        return (*notes, *by_layers(seen))


def by_layers(said: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """Notes by layer, grouped: `L0, L2: ...` for layers with the same words."""
    found: dict[str, set[int]] = {}
    for layer, words in said:
        found.setdefault(words, set()).add(layer)
    return tuple(f"L{listed(sorted(layers))}: {words}" for words, layers in found.items())


def check_in_place(displaced: Iterable[int], what: str) -> None:
    """Raises `InputError`, naming `what`, if any layers are `displaced` (their rows are not their tokens)."""
    if layers := sorted(set(displaced)):
        raise InputError(f"{what}, and {_not_in_place(layers)}")


def _not_in_place(layers: Sequence[int]) -> str:
    return f"rows of L{listed(layers)} are not the tokens in their place, as exchanging tokens shows"
