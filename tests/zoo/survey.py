"""One specimen, every attention layer of it: read, certified, and held against an untouched run."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.attention import AttentionCall
from attnscope.capture.cause.reaching import reaches_of
from attnscope.capture.cause.standing import standings_of
from attnscope.capture.following.describe import sides_of
from attnscope.capture.run import chosen_row, run_watched
from attnscope.model.anatomy.sites import find_sites
from attnscope.results import Reach, Verdict
from attnscope.verify import certify_heads
from attnscope.vocabulary import Effect

from .specimen import Specimen

MATCHING = 2e-6  # float32 weights against float32 weights of the untouched run


@dataclass
class Survey:
    """What was found out about one model type; `reason` where there is nothing to show."""

    model_type: str
    architecture: str = ""
    routes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sites: int = 0  # attention modules
    layers: int = 0  # attentions that were read, one per layer and call
    verdicts: dict[str, int] = field(default_factory=dict)  # of layers: the worst of a layer's heads
    weight_error: float = 0.0
    power: float = 0.0  # of the faintest fault in any certified head
    faintest: str = ""
    special: tuple[str, ...] = ()
    same_output: bool = True
    returned: int = 0  # weight tensors that the untouched run returned
    matched: int = 0  # of these, equal to what was recomputed
    silent: tuple[str, ...] = ()  # attention modules that were entered and showed nothing
    effects: dict[str, int] = field(default_factory=dict)  # of heads: what becomes of their answers
    doubts: tuple[str, ...] = ()  # why that is not simply their own rows
    runs: int = 0  # forward passes that told
    notes: str = ""
    reason: str = ""

    @property
    def verdict(self) -> str:
        """The worst of any layer's verdicts; what is the case where none was read."""
        if not self.same_output:
            return Verdict.FAILED.value
        there = [verdict for verdict in Verdict if self.verdicts.get(verdict.value)]
        return there[-1].value if there else "none"


def survey(specimen: Specimen, blocks: int | None = None) -> Survey:
    """Every attention of the model on the last of its inputs, certified, and its results against a plain run.

    The last row of a batch is the one that is padded. Of the separate attentions of one layer only the
    first `blocks` (None: all).
    """
    model, inputs = specimen.model, specimen.inputs
    row = chosen_row(-1, inputs)
    found = find_sites(model)
    result = Survey(specimen.model_type, type(model).__name__, notes=specimen.notes, sites=len(found))
    untouched = _run(model, inputs)
    returned = _returned(model, inputs)
    calls: list[AttentionCall] = []
    entered: Counter[nn.Module] = Counter()
    hooks = [s.module.register_forward_hook(lambda m, *_: entered.update([m])) for s in found]
    try:
        torch.manual_seed(0)
        watched = run_watched(model, inputs, found, calls.append, row=row)
    finally:
        for hook in hooks:
            hook.remove()
    result.same_output = _same(untouched, watched)
    standings = standings_of(model, inputs, found, None, sides_of(model, inputs, None, row=row), row)
    calls = [standings.settled(call) for call in calls]
    calls = [call for call in calls if blocks is None or call.block < blocks]
    reaches = reaches_of(model, inputs, found, None, standings.placed, standings.disordered)
    calls = [reaches.settled(call) for call in calls]
    reached = [reach for call in calls for reach in ((call.reach or {0: Reach()}).values())]
    result.effects = dict(Counter(reach.effect.value for reach in reached))
    result.doubts = tuple(dict.fromkeys(reach.reason for reach in reached if reach.effect is not Effect.OWN))
    result.runs = max((reach.runs for reach in reached), default=0)
    seen = {call.module for call in calls}
    result.silent = tuple(site.path for site in found if entered[site.module] and site.path not in seen)
    result.routes = tuple(dict.fromkeys(str(call.route) for call in calls))
    result.kinds = tuple(dict.fromkeys(str(call.kind) for call in calls))
    result.layers = len(calls)
    result.special = _special(calls, found)
    _certify(result, calls)
    result.returned = len(returned)
    result.matched = sum(any(_equal(each, call, row) for call in calls) for each in returned)
    return result


def _certify(result: Survey, calls: list[AttentionCall]) -> None:
    verdicts: Counter[str] = Counter()
    faintest = (float("inf"), "")
    for call in calls:
        certificates = certify_heads(call, range(call.heads))
        worst = max((each.verdict for each in certificates), key=lambda verdict: verdict.rank)
        verdicts[worst.value] += 1
        result.weight_error = max(result.weight_error, *(each.weight_error for each in certificates))
        for each in certificates:
            for fault in each.faults:
                faintest = min(faintest, (fault.power, fault.name))
            if each.verdict is Verdict.FAILED and not result.reason:
                off = f"weights {each.weight_error:.1e}, output {each.output_error:.1e}"
                result.reason = f"{call.module}: {each.reason} ({off}, {each.weight_tolerance:.1e} tolerated)"
    result.verdicts = dict(verdicts)
    result.power, result.faintest = faintest if calls else (0.0, "")


def _special(calls: list[AttentionCall], found: tuple[Any, ...]) -> tuple[str, ...]:
    """What sets the model's attention apart from the plain kind."""
    words: dict[str, None] = {}
    for call in calls:
        if call.key_heads < call.heads:
            words["grouped queries"] = None
        if call.v.shape[-1] != call.q.shape[-1]:
            words["value_dim differs"] = None
        if abs(call.scale - call.q.shape[-1] ** -0.5) > 1e-6:
            words["own scale"] = None
        for term in call.terms:
            words[term.name] = None
        if call.softcap is not None:
            words["soft cap"] = None
        if call.sinks is not None:
            words["sinks"] = None
        if call.window is not None:
            words["window"] = None
        if call.unrotated_k is not None and not torch.equal(call.unrotated_k, call.k):
            words["rotary"] = None
        if call.block:
            words["several attentions per layer"] = None
        if call.q.shape[1] != call.k.shape[1] and call.kind != "cross":
            words["keys are not the queries' tokens"] = None
        if call.remainder is not None:
            words["remainder"] = None
    if any(len(site.layers) > 1 for site in found):
        words["shared layers"] = None
    return tuple(words)


def _run(model: nn.Module, inputs: Mapping[str, Any]) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        return model(**inputs)


def _returned(model: nn.Module, inputs: Mapping[str, Any]) -> list[Tensor]:
    """The attention weights that a plain run returns when it is asked for them; nothing where it refuses."""
    try:
        torch.manual_seed(0)
        with torch.no_grad():
            out = model(**inputs, output_attentions=True)
    except Exception:
        return []
    return [tensor.cpu() for tensor in _attentions(out) if tensor.ndim == 4]


def _attentions(out: Any) -> Iterator[Tensor]:
    """Every tensor that a result, or a result inside it, calls an attention."""
    for name, value in out.items() if isinstance(out, Mapping) else ():
        yield from _tensors(value) if "attention" in name else _attentions(value)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


def _same(first: Any, second: Any) -> bool:
    """Whether all tensors of two results are the same to the bit; what is no number counts as the same."""
    pairs = list(zip(_tensors(first), _tensors(second), strict=True))
    return all(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in pairs)


def _equal(returned: Tensor, call: AttentionCall, row: int) -> bool:
    mine = torch.stack([call.weights[head].cpu() for head in range(call.heads)])
    entries = returned[row : row + 1] if len(returned) > row else returned
    candidates = [*entries, *returned] if call.block else entries
    return any(
        each.shape == mine.shape and float((each.double() - mine.double()).abs().max()) <= MATCHING
        for each in candidates
    )
