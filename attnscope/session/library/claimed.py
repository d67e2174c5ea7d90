"""Questions about what heads do, each answered beside its controls: find, ablate, flow."""

from typing import Any

from attnscope.results import Ablation, Finding, Flow
from attnscope.session.ablating import Ablating
from attnscope.session.choosing import choose
from attnscope.session.library.entered import Entered
from attnscope.session.questions.claims.ablation import ablate
from attnscope.session.questions.claims.finding import Wish, find, head_named
from attnscope.session.questions.claims.flow import flow
from attnscope.session.request import Looking, Numbers, Wanted


class Claimed(Entered):
    """What can be claimed of heads."""

    def find(
        self,
        query: str | int | None = None,
        key: str | int | None = None,
        *,
        pattern: str | None = None,
        like: str | tuple[int, int] | None = None,
        controls: int = 100,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        words: bool = False,
        special: str | None = None,
        **attention: Any,
    ) -> Finding:
        """Heads ranked by what `query` gives to `key`, by a pattern, or by likeness to a head (`L3H11`).

        Each stands beside the same number of `controls`, texts of the same shape with the words exchanged, or
        pictures and sounds with their patches or frames; `attention` is kind, tower, block or route, as in
        `head`. Patterns are previous, next, self, first, same, induction, punctuation and special. With
        `words`, or without `special` tokens, rows are as `head` has them.
        """
        given = head_named(like) if isinstance(like, str) else like
        wish = Wish(query, key, pattern, given, controls, seed)
        return find(*self._read(Wanted(layers, heads, **attention)), wish, Looking(words, special))

    def flow(
        self,
        query: str | int,
        *,
        seed: int = 0,
        layers: Numbers = None,
        heads: Numbers = None,
        **attention: Any,
    ) -> Flow:
        """What reaches `query` from every input token: rollout, flow, rollout by norm, value zeroing.

        Beside them what replacing each input token does to the model's answer there, and how far the two
        agree. `layers` are the first ones, by default all; `attention` is kind, tower or route, as in `head`.
        """
        return flow(*self._read(Wanted(layers, heads, **attention)), query, seed)

    def ablate(
        self,
        layers: Numbers = None,
        heads: Numbers = None,
        *,
        named: str | None = None,
        each: bool = False,
        replacement: str | None = None,
        edge: str | None = None,
        answer: str | None = None,
        to: str | None = None,
        rank: bool = False,
        top: int | None = None,
        controls: int | None = None,
        seed: int = 0,
        by: str | None = None,
        **attention: Any,
    ) -> Ablation:
        """What the model's answer becomes without heads, by default without each of them in turn.

        In the place of their outputs stand zeros, or as `replacement` "mean" or another text; `edge`
        ("it->door") cuts one edge. With `to` every head is patched from that text, with `rank` heads are
        ranked by one backward pass and the `top` ones taken away. Heads of several layers are `named`, as in
        "L1H10,L2H3"; `by` is what ranks, "patching", "importance", "attention-gradient" or "logit".
        `attention` is kind, tower or route.
        """
        turn = each or (layers is None and heads is None and named is None)
        wish = Ablating(turn, replacement, edge, answer, to, rank, top, controls, seed, named, by)
        wanted = Wanted(layers, heads, **attention)
        chosen = choose(self._model, wanted, self._listener, sensed=self._inputs.sensed)
        return ablate(self._whole(), chosen, wish)
