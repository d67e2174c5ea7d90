"""The changes that an intervention can make: to a head's output, or to another part's result.

    Zero()               zeros: the head adds nothing to what its layer writes
    Put(answers)         its output in another run, or any other of the same shape
    Cut(queries, keys)   its output without some links: these keys get no weight, and the other weights
                         of the row are divided by what is left, as if its score had been minus infinity
    Rounded()            its own output, every number moved by its precision: what rounding alone does
    Lent(over)           its output in another entry of the batch, or for some of that entry's inputs

Each is made from the attention as it passes by (`Attended`), for one head and one entry of the batch.
Its effect is read off the rows of the model's answer (`AnswerRows`).

A change may go along one path only (`Via`): into what some later heads read, and on from there. Every variant
then runs as two entries of a batch, one behind the other:

    the sender's   holds the change. Later heads keep the outputs that they have in the main entry: so
                   norms and MLPs make something of the change on its way, and no other head does
    the main one   holds nothing but that the receivers answer to queries, keys and values of the sender's.
                   Whatever comes after them is computed anew

which is path patching (Wang et al. 2022, arXiv 2211.00593; Goldowsky-Dill et al. 2023, arXiv 2304.05969), in
one pass. Where the answer is read off the sender's entry, what reaches it `direct`, past all later heads, is
let in as well: with every later head as a receiver that is all that the change does.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.capture.arithmetic import epsilon_of, sums_of
from attnscope.errors import InputError
from attnscope.results.claims.effect import Part, Receiver
from attnscope.verify import apart

_STRAY = 0.25  # times root of epsilon and largest score: more than rounding moves a score


INPUTS = "qkv"  # what an attention reads: queries, keys, values
Logits = Float[Tensor, "entry row choice"]
Read = Callable[[Any], Float[Tensor, "entry position choice"]]  # what a model returns -> its scores
Place = tuple[int, int]  # a layer, and the index of the attention in it
Answers = Mapping[Place, Float[Tensor, "part head query value_dim"]]


@dataclass(frozen=True, eq=False)
class AnswerRows:
    """Where the answer stands: a function that reads the scores off a model's output, and the positions."""

    read: Read
    rows: tuple[int, ...]
    length: int  # positions in the full scores

    def of(self, output: Any) -> Logits:
        """Scores at the answer's rows, whether the model computed all rows or only these."""
        scores = self.read(output)
        return scores if scores.shape[1] == len(self.rows) != self.length else scores[:, list(self.rows)]


@contextmanager
def rows_only(model: nn.Module, asked: AnswerRows) -> Iterator[None]:
    """While open, the model's output embeddings are multiplied with the answer's rows alone.

    A vocabulary takes a fifth of a small model's time, and of a text one row of it is needed. Whether the
    model's answer is the same without the other rows is for the caller to compare with a whole run.
    """
    find: Callable[[], Any] = getattr(model, "get_output_embeddings", lambda: None)
    head = find()
    if head is None or not isinstance(head, nn.Module) or len(asked.rows) >= asked.length:
        yield
        return

    def cut(_head: nn.Module, args: Sequence[Any]) -> Any:
        hidden = args[0] if args else None
        if isinstance(hidden, Tensor) and hidden.ndim == 3 and hidden.shape[1] == asked.length:
            return (hidden[:, list(asked.rows)], *args[1:])
        return None

    with head.register_forward_pre_hook(cut):
        yield


@dataclass(frozen=True, eq=False)
class Attended:
    """One attention as it passes by: its output, and the weights and values behind it.

    The batch axis holds `entries`, each of them with as many parts (windows) as the layer cuts it into. With
    a `sink` the weights of a row may sum to less than 1. `with_values` is the output for the same
    queries and keys with other values in the place of `value`; `with_inputs` is the attention of one entry
    to some inputs (of `INPUTS`) of another.
    """

    place: Place
    output: Float[Tensor, "batch head query value_dim"]
    weights: Callable[[], Float[Tensor, "batch head query key"]]
    value: Float[Tensor, "batch kv_head key value_dim"]
    with_values: Callable[[Tensor], Float[Tensor, "batch head query value_dim"]]
    module: nn.Module
    with_inputs: Callable[[slice, slice, str], "Attended"]
    sink: bool = False

    @property
    def rounding(self) -> float:
        """Largest error of the output against another sum of weights times values, relative to the values."""
        made = self.output, self.value
        return apart(self.value.shape[2], epsilon_of(*made), sums_of(*made))

    def parts(self, entry: int, entries: int) -> slice:
        """Slice of the batch axis that belongs to one of the entries."""
        each = max(len(self.output) // entries, 1)
        return slice(entry * each, (entry + 1) * each)

    def values_of(self, head: int) -> Float[Tensor, "batch key value_dim"]:
        """The values that a query head reads: groups of heads share theirs."""
        return self.value[:, head // (self.output.shape[1] // self.value.shape[1])]


@dataclass(frozen=True)
class Zero:
    """Change: the head's output is zeros."""

    def made(self, seen: Attended, head: int, parts: slice) -> Tensor:
        return seen.output.new_zeros(seen.output[parts, head].shape)


@dataclass(frozen=True, eq=False)
class Put:
    """Change: the head's output from elsewhere, by place: a run on another text, or the mean of several."""

    answers: Answers

    def made(self, seen: Attended, head: int, parts: slice) -> Tensor:
        given, there = self.answers[seen.place][:, head], seen.output[parts, head]
        if given.shape != there.shape:
            shapes = f"{tuple(given.shape)} cannot stand in the place of {tuple(there.shape)}"
            raise InputError(f"layer {seen.place[0]}: an output of shape {shapes}")
        return given.to(there)


@dataclass(frozen=True)
class Cut:
    """Change: the output without the links from all of these queries to all of these keys, by position."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]

    def made(self, seen: Attended, head: int, parts: slice) -> Tensor:
        rows, asked, given = seen.output[parts, head].clone(), list(self.queries), list(self.keys)
        weights = seen.weights()[parts, head][:, asked].to(rows.dtype)
        others = weights.clone()
        others[..., given] = 0
        if not bool((others.sum(-1) > 0).all()):
            raise InputError(
                f"layer {seen.place[0]} head {head}: the query sees no other key, so that link cannot be cut"
            )
        # the sum of the others keeps its digits where it is little; a sink has the rest to 1
        left = 1 - weights[..., given].sum(-1) if seen.sink else others.sum(-1)
        rows[:, asked] = (others / left[..., None]).matmul(seen.values_of(head)[parts])
        return rows


@dataclass(frozen=True)
class Rounded:
    """Change: the output with every number moved by its dtype's epsilon, signs at random."""

    def made(self, seen: Attended, head: int, parts: slice) -> Tensor:
        there = seen.output[parts, head]
        lot = torch.randint(0, 2, there.shape, generator=torch.Generator().manual_seed(head))
        return there * (1 + torch.finfo(there.dtype).eps * (2 * lot - 1).to(there))


@dataclass(frozen=True)
class Lent:
    """Change: the head's unchanged output in the batch entry that is `over` further on.

    Where only some `inputs` are lent, the head's output for these and its own other inputs.
    """

    over: int
    inputs: str = INPUTS

    def made(self, seen: Attended, head: int, parts: slice) -> Tensor:
        if not self.inputs:
            return seen.output[parts, head]
        if self.inputs == INPUTS:
            return seen.output[further(parts, self.over), head]
        return seen.with_inputs(parts, further(parts, self.over), self.inputs).output[:, head]


def further(parts: slice, over: int) -> slice:
    """Slice of the batch axis for the entry that is `over` further on."""
    far = over * (parts.stop - parts.start)
    return slice(parts.start + far, parts.stop + far)


What = Zero | Put | Cut | Rounded | Lent


@dataclass(frozen=True, eq=False)
class Change:
    """Replaces the output of one head of one layer by `what`, at all queries or `at` some."""

    layer: int
    head: int
    what: What
    at: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Held:
    """All heads of a layer get the outputs that they have in the batch entry `over` further on."""

    layer: int
    over: int = 1


@dataclass(frozen=True)
class Tap:
    """A place to read or replace a part's tensor: a module's result, or its input if `given`.

    `turn` is which of the module's forwards it is; a `shared` module has several, one in each of its layers.
    What is handed on before the first layer has layer -1.
    """

    part: Part
    layer: int
    module: nn.Module
    turn: int = 0
    given: bool = False
    shared: bool = False

    @property
    def place(self) -> Place:
        """The tap's place; its number is negative, while those of attentions count from 0."""
        return self.layer, -1 - list(Part).index(self.part)


@dataclass(frozen=True, eq=False)
class Write:
    """Change of a tap's tensor, at all tokens or `at` some: to zeros, other `rows`, or rounded numbers."""

    tap: Tap
    rows: Float[Tensor, "token feature"] | None = None
    at: tuple[int, ...] | None = None
    rounded: bool = False

    @property
    def layer(self) -> int:
        return self.tap.layer

    def made(self, there: Float[Tensor, "token feature"]) -> Float[Tensor, "token feature"]:
        """The tap's tensor after this change."""
        new = torch.zeros_like(there) if self.rows is None else self.rows.to(there)
        if new.shape != there.shape:
            shapes = f"{tuple(new.shape)} cannot stand in the place of {tuple(there.shape)}"
            raise InputError(f"layer {self.layer}: an output of shape {shapes}")
        if self.rounded:
            lot = torch.randint(0, 2, there.shape, generator=torch.Generator().manual_seed(0))
            new = there * (1 + torch.finfo(there.dtype).eps * (2 * lot - 1).to(there))
        if self.at is None:
            return new
        some = there.clone()
        some[list(self.at)] = new[list(self.at)]
        return some


Variant = tuple[Change | Held | Write, ...]  # changes of one run; an empty one is the model as it is


def asked_of(seen: Attended, variants: Sequence[Variant]) -> Iterator[tuple[slice, Change | Held]]:
    """Head changes that variants make at this layer's attention, each with its slice of the batch."""
    for entry, variant in enumerate(variants):
        for change in variant:
            if not isinstance(change, Write) and change.layer == seen.place[0]:
                yield seen.parts(entry, len(variants)), change


def with_changes(seen: Attended, variants: Sequence[Variant]) -> Tensor:
    """The attention's output with every variant's changes in its batch entry."""
    new = seen.output.clone()
    for parts, change in asked_of(seen, variants):
        if isinstance(change, Held):
            new[parts] = seen.output[further(parts, change.over)]
        else:
            made = change.what.made(seen, change.head, parts)
            if change.at is None:
                new[parts, change.head] = made
            else:
                new[parts, change.head, list(change.at)] = made[:, list(change.at)]
    return new


@dataclass(frozen=True)
class Via:
    """Heads that a change is let into (path patching), and whether it also reaches the answer directly."""

    receivers: tuple[Receiver, ...]
    direct: bool = False

    def entries(self, variant: Variant, layers: Sequence[int]) -> tuple[Variant, Variant]:
        """The variants of the sender's and of the main entry, for a model with attention in these layers."""
        first = min(change.layer for change in variant)
        mine = [each for each in self.receivers if each.layer > first]
        held = [Held(layer) for layer in layers if layer >= first]
        same = [Change(each.layer, each.head, Lent(1, _others(each.inputs))) for each in mine]
        lent = [Change(each.layer, each.head, Lent(-1, each.inputs)) for each in mine]
        return (*held, *same, *variant), tuple(lent)


def holding(layer: int, variants: Sequence[Variant]) -> list[Variant]:
    """For an attention that is no receiver: in every sender's entry, hold the outputs of the main entry."""
    held = (Held(layer),)
    return [held if any(isinstance(one, Held) for one in variant) else () for variant in variants]


def _others(inputs: str) -> str:
    return "".join(each for each in INPUTS if each not in inputs)


def strays(control: Tensor, untouched: Tensor, allowed: float | None = None) -> bool:
    """Whether an untouched batch entry differs from the untouched run by more than rounding."""
    if control.shape != untouched.shape:
        return True
    same = (control == untouched) | (control.isnan() & untouched.isnan())  # infinite in both, or no number
    near = (control - untouched).abs() <= (carried(untouched) if allowed is None else allowed)
    return not bool((same | near).all())


def carried(untouched: Tensor) -> float:
    """Largest change of a model's scores that rounding may make, in a batch or with gradients kept.

    The same work on other shapes is added in another order, and every layer carries that on, some of them
    enlarged: it cannot be counted as the rounding of one sum can.
    """
    largest = float(untouched[untouched.isfinite()].abs().max())
    return _STRAY * math.sqrt(epsilon_of(untouched)) * (1 + largest)
