"""Computes composition scores of all pairs of heads, from weights read back out of one run.

A short text that the program brings along runs once, or noise where a model reads pictures or sounds, so
that it is seen which matrices make queries, keys and values and read the answers, and what lies between
layers; what was read is in no score.
"""

from contextlib import nullcontext
from dataclasses import replace

from attnscope.capture.circuits.paths import Circuits, read_circuits
from attnscope.errors import InputError, listed
from attnscope.model.anatomy.placed import device_of
from attnscope.model.media.files import noise
from attnscope.reference import place
from attnscope.results.base.origin import tallied
from attnscope.session import selection as ranges
from attnscope.session.choosing import Chosen
from attnscope.session.listener import Listener, Quiet
from attnscope.session.opening import Opened
from attnscope.session.reading import read_inputs
from attnscope.session.request import Inputs
from attnscope.verbs.compose.circuits import Composing, Head, Parts, facts
from attnscope.verbs.compose.question import Compose
from attnscope.verbs.compose.result import Composition, Through
from attnscope.verify import certify_heads
from attnscope.vocabulary import Route

_NUMBERS = (5, 9, 7, 11, 6, 8, 12, 10)  # of tokens, where there is no tokenizer for a text


def compose(opened: Opened, chosen: Chosen, asked: Compose, listener: Listener) -> Composition:
    """The composition scores of an open model; `InputError` where no pair of heads has one."""
    if chosen.route is Route.RETURNED:
        raise InputError("--route returned has weights alone: here queries and keys are needed")
    if chosen.block:
        raise InputError("only layers that attend once are composed: leave --block out")
    head, name = _one(opened, chosen, asked), opened.model.name
    if len(chosen.layers) < 2:
        raise InputError(f"{name} has one layer of {chosen.kind} attention: no head comes before another")
    with listener.working("reading the matrices of its heads"):
        circuits, text = _circuits(opened, chosen)
        captured = circuits.captured
        calls = [captured.call(layer) for layer in dict.fromkeys(call.layer for call in captured.calls)]
        # that head h reads the keys of its group is proved by these
        proofs = (proof for call in calls for proof in certify_heads(call, range(call.heads)))
        certified = tallied(proof.verdict for proof in proofs)
    through = tuple(Through) if asked.through is None else (Through(asked.through),)
    where = place(device_of(opened.model.module))
    composing = Composing(circuits, through, asked.draws, asked.seed, head, where)
    with listener.working("composing heads"):
        pairs = composing.pairs()
    if not (pairs.scores == pairs.scores).any():
        raise InputError(f"no composition in {name}: {'; '.join(pairs.reasons) or 'no pair of heads'}")
    inside, outside = facts(circuits)
    parts = Parts(opened.model.module)
    matrices, ways = parts.matrices(circuits), parts.ways(circuits, through)
    return Composition(
        kind=chosen.kind,
        layers=tuple(circuit.layer for circuit in circuits.layers),
        counts=tuple(circuit.heads for circuit in circuits.layers),
        through=through,
        **vars(pairs),
        draws=asked.draws,
        seed=asked.seed,
        inside=inside,
        outside=outside,
        certified=certified,
        provenance=captured.provenance.of_no_text,
        shown=head,
        tower=captured.tower,
        read_back_in=text,
        matrices=matrices,
        norms=tuple(parts.norms.values()),
        ways=ways,
    )


def _one(opened: Opened, chosen: Chosen, asked: Compose) -> Head | None:
    if asked.one.layer is None:
        return None
    there, name = chosen.tower.layers, opened.model.name
    wanted = ranges.parse(asked.one.layer, "layer"), ranges.parse(asked.one.head, "head")
    layers = ranges.choose(wanted[0], there, "layer", f"{name}: layers {listed(there)}")
    heads = tuple(range(chosen.tower.heads[layers[0]])) or chosen.heads
    where = f"{name}: layers {listed(there)}, heads {listed(heads)}"
    numbers = ranges.choose(wanted[1], heads, "head", where)
    if len(layers) != 1 or len(numbers) != 1:
        raise InputError("this needs one head: give one --layer and one --head, or neither")
    return layers[0], numbers[0]


def _circuits(opened: Opened, chosen: Chosen) -> tuple[Circuits, str]:
    model = opened.model
    with noise(model.medium) if model.medium else nullcontext() as file:
        if model.medium:
            inputs = Inputs(image=file) if model.medium == "image" else Inputs(audio=file)
        else:
            inputs = Inputs(ids=_NUMBERS) if model.tokenizer is None else Inputs()
        reading = read_inputs(replace(opened, chosen=chosen), inputs, Quiet())
    with reading.running():
        circuits = read_circuits(model.module, reading.inputs, chosen.selection(), reading.labels(chosen))
    return circuits, " ".join(inputs.texts(model)) if inputs.ids is None else ""
