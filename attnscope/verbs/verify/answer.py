"""Answers `verify`: certifies every head of a model, and compares its outputs with an unwatched run."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.analysis.heads.head import uncertified
from attnscope.attention import AttentionCall, by_layers
from attnscope.capture import provenance_of
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.rows import AT_ONCE
from attnscope.capture.cause.standing import standings_of
from attnscope.capture.following.describe import sides_of
from attnscope.capture.run import Labels, run_watched, traced_instead
from attnscope.capture.running import evaluating, hooked
from attnscope.errors import InputError
from attnscope.model.anatomy.sites import find_sites
from attnscope.model.anatomy.towers import Tower, find_towers, without_attention
from attnscope.reference import exact
from attnscope.results import Provenance
from attnscope.session.reading import Reading
from attnscope.tokens import Tokens
from attnscope.verbs.verify.question import Verify
from attnscope.verbs.verify.result import LayerCheck, OutputCheck, Verification
from attnscope.verify import certify_heads


def verify_reading(reading: Reading, asked: Verify) -> Verification:
    """Certify all heads of the reading's model, and compare its outputs with an unwatched run."""
    model, inputs, tokens = reading.model, reading.inputs, reading.encoded.tokens
    target = None if reading.target is None else reading.target.tokens
    with reading.running("certifying every head"):
        provenance = provenance_of(model.module, tokens, reading.origin())
        result = verify_model(model.module, inputs, tokens, provenance, target, asked.every_token)
    medium = reading.medium
    return result if medium is None else replace(result, notes=(medium.described, *result.notes))


UNSEEN = "no dense softmax attention was seen"


def verify_model(
    model: nn.Module,
    inputs: Mapping[str, Any],
    tokens: Tokens,
    provenance: Provenance,
    target: Tokens | None = None,
    every_token: bool = False,
) -> Verification:
    """Certify every layer and head of `model` while it runs, layer by layer.

    `tokens` name the `input_ids`, `target` the `decoder_input_ids` of an encoder-decoder. With `every_token`
    the position of every token is tested, however long the text, and every row of a block by itself.

    The model first runs unwatched; its outputs under the takeover must be identical to the bit, since the
    same kernels run on the same tensors.
    """
    with evaluating(model), final_hidden_states(model) as before:
        untouched = model(**inputs)
    towers = find_towers(find_sites(model))
    if not towers:
        raise InputError(without_attention(model, provenance.model))
    tower_of = {site.path: tower for tower in towers for site in tower.sites}
    checks: list[LayerCheck] = []
    beside: set[tuple[int, str]] = set()

    every, labels = [site for tower in towers for site in tower.sites], Labels(tokens, target)
    most = None if every_token else AT_ONCE
    sides = sides_of(model, inputs, tokens, target)
    standings = standings_of(model, inputs, every, None, sides, most=most)
    reaches = reaches_of(
        model, inputs, every, None, standings.placed, standings.disordered, every_row=every_token
    )

    def keep(call: AttentionCall) -> None:
        call = reaches.settled(standings.settled(call))
        beside.update((call.layer, each) for each in call.beside)
        certificates = certify_heads(call, range(call.heads))
        place = (tower_of[call.module].name, str(call.route), call.block)
        checks.append(LayerCheck(call.layer, call.kind, call.module, certificates, *place))

    ran = set[nn.Module]()
    watching = (each.module.register_forward_hook(lambda module, *_: ran.add(module)) for each in every)
    with final_hidden_states(model) as after, hooked(watching):
        watched = run_watched(model, inputs, every, keep, labels)
        outputs = compared({**before, **untouched}, {**after, **watched})
        seen = {check.module for check in checks}
        if mute := traced_instead([site for site in every if site.module in ran and site.path not in seen]):
            again = run_watched(model, inputs, mute, keep, labels)
            outputs = _worse(outputs, compared({**before, **untouched}, {**after, **again}))
    silent = [check for tower in towers for check in _unread(tower, ran, checks)]
    idle = [tower.called for tower in towers if not any(site.module in ran for site in tower.sites)]
    notes = (f"not run for this input: {', '.join(idle)}",) if idle else ()
    if standings.tried:
        notes = (*notes, f"the tokens' places were tried {standings.tried}: --every-token tries them all")
    place = {site.path: number for number, tower in enumerate(towers) for site in tower.sites}
    ordered = sorted([*checks, *silent], key=lambda check: (place[check.module], check.layer, check.block))
    notes = (*notes, *by_layers(sorted(beside)))
    routes = dict.fromkeys(check.route for check in ordered)
    as_read = replace(provenance, route=", ".join(routes))
    return Verification(tokens, tuple(ordered), outputs, as_read, notes)


def _unread(tower: Tower, ran: Container[nn.Module], checks: Sequence[LayerCheck]) -> Iterator[LayerCheck]:
    seen = {(check.module, check.layer) for check in checks}
    for site in tower.sites:
        for layer in site.layers:
            if site.module in ran and (site.path, layer) not in seen:
                nothing = (uncertified(UNSEEN),) * max(tower.heads[layer], 1)
                yield LayerCheck(layer, site.kind, site.path, nothing, tower.name, "none")


@contextmanager
def final_hidden_states(model: nn.Module) -> Iterator[dict[str, Any]]:
    """Context manager: a dictionary with the last final hidden states of the base model inside `model`.

    Requesting all hidden states from the model would leave the library's own hooks on it.
    """
    states: dict[str, Any] = {}

    def remember(_base: nn.Module, _inputs: object, output: Any) -> None:
        states["last_hidden_state"] = output[0]

    with getattr(model, "base_model", model).register_forward_hook(remember):
        yield states


def _worse(first: Sequence[OutputCheck], second: Sequence[OutputCheck]) -> tuple[OutputCheck, ...]:
    """For each output, the check with the larger difference."""
    pairs = zip(first, second, strict=True)
    return tuple(max(pair, key=lambda check: (not check.identical, check.difference)) for pair in pairs)


def compared(untouched: Mapping[str, Any], watched: Mapping[str, Any]) -> tuple[OutputCheck, ...]:
    """Compare every tensor in the outputs of both runs: largest difference, and whether identical."""
    found = list[OutputCheck]()
    for name, was in untouched.items():
        if isinstance(was, Tensor):
            now: Tensor = watched[name]
            # NaN in both runs counts as equal: such a model is unusable, but unchanged
            same = bool(((was == now) | (was.isnan() & now.isnan())).all())
            difference = (exact(was) - exact(now)).abs().nan_to_num(0 if same else torch.inf).max()
            found.append(OutputCheck(name, float(difference), same))
    return tuple(found)
