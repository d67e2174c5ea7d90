"""What a run of a model has shown, kept for the next question about the same text.

After the answer stands: every head of the layers that were captured is recomputed and certified by the same
functions that answer for one of them alone, and stored. It costs a fraction of the run, and nothing where the
heads are many or the text long: then the heads that were asked for are kept, or none.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attnscope.analysis.heads.dimensions import rotation_in
from attnscope.analysis.heads.head import head_terms
from attnscope.analysis.padding import without_padding
from attnscope.attention import AttentionCall, Capture
from attnscope.errors import AttnscopeError
from attnscope.model.loaded import Model
from attnscope.model.source import digests
from attnscope.model.source.checkpoint import Checkpoint, digest
from attnscope.results import Overview, Provenance, Thumbnails, Verdict
from attnscope.session.cache.entry import DamagedEntryError, Part
from attnscope.session.cache.memory import WITNESSES, Memory, look_into
from attnscope.session.cache.packed import packed
from attnscope.session.cache.recall import ABOUT, LAYER, RESULT, TOWER, of_several
from attnscope.session.cache.witnesses import Witnesses, code_in_use
from attnscope.session.choosing import Chosen
from attnscope.session.entering import open_chosen
from attnscope.session.listener import Listener
from attnscope.session.opening import Purpose
from attnscope.session.reading import Reading
from attnscope.session.request import Inputs, ModelRequest
from attnscope.session.wanted import Looking, Wanted
from attnscope.verify import certify_heads

if TYPE_CHECKING:
    from attnscope.session.opening import Check

MOST_PAIRS = 2**19  # pairs of a query and a key, over all heads: twelve heads of 209 tokens, 144 of 60
_BELIEVED = {Verdict.CERTIFIED, Verdict.PARTIAL, Verdict.INCONCLUSIVE}
_OWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids", "decoder_input_ids"}


class Made:
    """Follows a run from when its model is open: what its answer was made with, where that is certain."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._before = memory, _generators()

    @property
    def by_lot(self) -> bool:
        """Whether a random generator has moved: the model may give another answer next time."""
        return _generators() != self._before

    def weights(self, model: Model) -> list[str] | None:
        """The witnesses of the weights; None where a file of the model may have changed meanwhile."""
        read, memory = model.checkpoint, self._memory
        if read is None or not read.source.folder.samefile(memory.home):
            return None
        return _weights(read, memory) if look_into(memory.home) == memory.folder else None

    def names(self, model: Model) -> list[str] | None:
        """The same; None also of what another run may not answer alike. It never fails."""
        try:
            return None if self.by_lot else self.weights(model)
        except OSError:
            return None


class Keeper:
    """Follows one run: what it captures and what is made of it, and at the end keeps what can be kept."""

    def __init__(self, memory: Memory, reading: Reading, chosen: Chosen, notices: Sequence[str]) -> None:
        self._memory, self._reading, self._chosen = memory, reading, chosen
        self._notices, self._possible = list(notices), set(reading.inputs) <= _OWN_INPUTS
        self._made, self._now = Made(memory), Witnesses(memory.home)
        self._captured: dict[int, Capture] = {}
        self._answers: list[tuple[tuple[Any, ...], Overview | Thumbnails]] = []

    def heads(self, queries: int, keys: int, chosen: Chosen) -> tuple[int, ...]:
        """Whose weights are captured: all of the chosen layers, where that is little."""
        count = min(chosen.tower.heads[layer] for layer in chosen.layers)
        little = count * len(chosen.layers) * queries * keys <= MOST_PAIRS
        return tuple(range(count)) if little else chosen.heads

    def captured(self, capture: Capture, reading: Reading) -> None:
        """Note what a run has shown, where it is of this text and little enough to be kept."""
        mine = self._reading
        if reading.encoded is not mine.encoded or reading.target is not mine.target:
            return  # some measures are taken of other tokens
        pairs = sum(len(call.weights) * call.q.shape[1] * call.k.shape[1] for call in capture.calls)
        if pairs <= MOST_PAIRS:
            self._captured |= dict.fromkeys((call.layer for call in capture.calls), capture)

    def answered(
        self, result: Overview | Thumbnails, chosen: Chosen, looking: Looking, measures: Sequence[str] = ()
    ) -> None:
        """Note an answer about several heads."""
        key = of_several(type(result), chosen.layers, chosen.heads, chosen.block, looking, measures)
        self._answers.append((key, result))

    def keep(self) -> None:
        """Keep all of it; what stands in the way of that is told, and nothing else happens."""
        memory = self._memory
        try:
            if not self._possible or self._made.by_lot or not self._captured:
                return
            provenance = next(iter(self._captured.values())).provenance
            same = provenance.token_ids == self._reading.encoded.tokens.ids
            made_with = self._made_with() if same and provenance.adapter is None else None
            if made_with is not None:
                self._store(provenance, made_with)
        except OSError as error:
            memory.complain(f"cannot be written: {error.strerror or error}")
        except (AttnscopeError, ValueError, MemoryError, RuntimeError) as error:
            memory.complain(f"does not hold this answer: {type(error).__name__}")

    def _made_with(self) -> Part | None:
        """What the answer was made with; None where that has changed meanwhile, or may have."""
        model, weights = self._reading.model, self._made.weights(self._reading.model)
        code = None if weights is None else code_in_use(_packages(model.module), self._memory.since)
        return None if weights is None or code is None else self._witnessed((*weights, *code))

    def _witnessed(self, names: Iterable[str]) -> Part:
        listed = sorted(set(names))
        return Part({"names": listed, "together": self._now.together(listed)})

    def _store(self, provenance: Provenance, made_with: Part) -> None:
        memory = self._memory
        by_depth = bool(provenance.part or provenance.unread)
        depth = max(self._chosen.layers) + 1 if by_depth else None
        common, block = {ABOUT: Part({"notices": self._notices}), WITNESSES: made_with}, self._chosen.block
        for layer, capture in self._captured.items():
            self._add(memory.key(LAYER, layer, block, depth), dict(_parts(capture, layer, block)), common)
        for key, result in self._answers:
            if result.verdict in _BELIEVED:
                self._add(memory.key(*key, depth), {RESULT: packed(result)}, common)
        tower = self._chosen.tower
        shape = {"kind": str(tower.kind), "heads": {str(n): tower.heads[n] for n in tower.layers}}
        parts = {TOWER: Part(shape | {"by_depth": by_depth}), WITNESSES: made_with}
        memory.store.put(memory.key(TOWER), parts)

    def _add(self, key: str, parts: dict[str, Part], common: dict[str, Part]) -> None:
        """Keep these parts beside those that are kept under the same key, where these still hold."""
        if not parts:
            return
        store = self._memory.store
        try:
            if (entry := store.get(key)) is not None:
                with entry:
                    if self._memory.holds(entry, self._now):
                        if set(parts) <= set(entry):
                            return
                        both = self._witnessed(
                            [*entry.part(WITNESSES).values["names"], *common[WITNESSES].values["names"]]
                        )
                        common = {ABOUT: entry.part(ABOUT), WITNESSES: both}
                        parts = {name: entry.part(name) for name in entry} | parts
        except DamagedEntryError as error:
            self._memory.spoilt(key, error)
        store.put(key, parts | common)


def _weights(read: Checkpoint, memory: Memory) -> list[str] | None:
    """The witnesses of the weight files that were read; None where it is not certain that they were these."""
    lasting = [file for file in read.files if memory.before.get(file.name) is not None]
    if any(digests.unread(file) != memory.before[file.name] for file in lasting):
        return None
    others = [file for file in read.files if file not in lasting]
    if others and (read.digest.result() is None or digest(read.files) != read.digest.result()):
        return None
    return [*(f"unread {file.name}" for file in lasting), *(f"weights {file.name}" for file in others)]


def _packages(module: torch.nn.Module) -> set[str]:
    """Which bring the code of this model: of its modules, and of the functions that attend."""
    functions = sys.modules["transformers.modeling_utils"].ALL_ATTENTION_FUNCTIONS.values()
    code = (*map(type, module.modules()), *functions)
    names = [str(getattr(thing, "__module__", None)).split(".") for thing in code]
    return {"torch.nn", *(".".join(parts[: 1 + (parts[0] == "torch")]) for parts in names)}


def _parts(capture: Capture, layer: int, block: int) -> Iterator[tuple[str, Part]]:
    """Every captured head of a layer in full, and what turns the keys of each key head."""
    call = capture.call(layer, block=block)
    if any(token.padding for side in (call.query_tokens, call.key_tokens) for token in side.items):
        return
    heads = tuple(call.weights)
    for head, certificate in zip(heads, certify_heads(call, heads), strict=True):
        if certificate.verdict in _BELIEVED:
            yield f"H{head}", packed(head_terms(capture, layer, head, block, certificate))
    for key_head in sorted({call.key_head(head) for head in heads}):
        yield f"K{key_head}", _turned(call, key_head)


def _turned(call: AttentionCall, key_head: int) -> Part:
    rotation, unpaired = rotation_in(without_padding(call), key_head)
    names = () if rotation is None else ("first", "second", "angle")
    return Part({"unpaired": unpaired}, {name: np.asarray(getattr(rotation, name)) for name in names})


def _generators() -> tuple[Any, ...]:
    """Where all random generators stand: a model that draws by lot gives another answer next time."""
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    states = [state.numpy().tobytes() for state in (torch.get_rng_state(), *cards)]
    name, numbers, *rest = np.random.get_state(legacy=True)
    return (*states, name, np.asarray(numbers).tobytes(), *rest, _pythons_own())


def _pythons_own() -> Any:
    return random.getstate()


class _Recording:
    """A listener that passes everything on and writes the notices down, so that the cache can repeat them."""

    def __init__(self, listener: Listener) -> None:
        self._listener, self.notices = listener, list[str]()

    def notice(self, text: str) -> None:
        self.notices.append(text)
        self._listener.notice(text)

    def detail(self, text: str) -> None:
        self._listener.detail(text)

    def working(self, what: str) -> AbstractContextManager[None]:
        return self._listener.working(what)


@contextmanager
def reading_kept(
    memory: Memory,
    request: ModelRequest,
    inputs: Inputs,
    wanted: Wanted,
    purpose: Purpose,
    check: "Check | None" = None,
) -> Iterator[tuple[Reading, Chosen]]:
    """A reading of the model, and what is chosen of it; what was shown meanwhile is kept if all went well."""
    memory.about_to_read()
    recording = _Recording(memory.listener)
    reading, chosen = open_chosen(request, inputs, wanted, recording, purpose, check)
    keeper = Keeper(memory, reading, chosen, recording.notices)
    yield replace(reading, keeper=keeper), chosen
    keeper.keep()
