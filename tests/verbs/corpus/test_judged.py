"""A text of a corpus that is certified as it is measured: which one, by what, and at what price."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import corpus_of_demo as demo
import pytest
from torch import nn

from attnscope.attention import MIXED
from attnscope.capture.weights import Passed
from attnscope.results import Reach, Verdict
from attnscope.verbs.corpus.engine import Text
from attnscope.verbs.corpus.measurer import Judged, sampled
from attnscope.verbs.corpus.part import Proved
from attnscope.verbs.corpus.reader import BatchReader
from attnscope.vocabulary import Effect, Standing

TEXTS = ("It is late.", "The parrots fly to the bank.", "A dog barks, and the old dog sleeps.")


@pytest.fixture
def reader() -> BatchReader:
    opened = demo.opened(demo.CorpusRecipe(demo.ModelRequest("demo"), demo.WANTED, ("entropy", "moved")))
    assert isinstance(opened.reader, BatchReader)
    return opened.reader


def ready(reader: BatchReader, *texts: str) -> list[Any]:
    return [reader.encoded(Text(i, 0, i + 1, text)) for i, text in enumerate(texts)]


@contextmanager
def changed(module: nn.Module, by: Callable[..., Any]) -> Iterator[None]:
    handle = module.register_forward_hook(by)
    try:
        yield
    finally:
        handle.remove()


def judged_of(reader: BatchReader, group: list[Any], row: int, see: Any = None) -> Any:
    judged = Judged(reader, group, row)

    def layer(number: int, passed: Passed) -> None:
        judged.layer(number, passed if see is None else see(number, passed))

    _, leaks = reader.values(group, layer, judged.text)
    assert leaks == 0
    return judged.proved()


def lengths(*groups: tuple[int, ...]) -> list[list[Any]]:
    return [[range(length) for length in group] for group in groups]


def test_the_sampled_text_is_that_which_is_filled_up_most_or_one_near_the_median_length() -> None:
    groups = lengths((3, 3, 4), (6, 9), (12, 12, 12, 15), (20,))
    assert sampled(groups, 0) == (1, 0)  # the first of two spreads of 3
    assert sampled(groups, 16) == (1, 0)
    assert sampled(groups, 1) == (1, 1)  # the median of ten is the fifth, of length 9, and the longest there
    assert sampled(groups, 17) == (1, 1)
    alone = lengths((400,), (430,), (470,), (500,), (512,))
    assert sampled(alone, 0) == sampled(alone, 1) == (2, 0)  # not the shortest
    assert sampled(lengths((7,)), 0) == (0, 0)


def test_a_text_whose_weights_are_others_when_it_is_read_alone_fails(
    reader: BatchReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reader.passing.read

    def read(inputs: Any, make: Any, text: Any = None) -> Any:
        def off(layer: int, passed: Passed) -> Any:
            weights = passed.weights.clone()
            weights[0, 2, 4, 1] += 0.02 if len(weights) == 1 and layer == 2 else 0
            return make(layer, replace(passed, weights=weights))

        return real(inputs, off, text)

    monkeypatch.setattr(reader.passing, "read", read)
    proved = judged_of(reader, ready(reader, *TEXTS), 1)
    assert proved.certified == {"certified": 6, "failed": 1}
    assert [each.why for each in proved.failed] == [
        "a weight is off by 0.02 from that of the text read alone"
    ]


def test_one_head_that_is_wrong_in_one_text_is_named_and_no_other(reader: BatchReader) -> None:
    def see(number: int, passed: Passed) -> Passed:
        weights = passed.weights.clone()
        if number == 2:
            weights[1, 1, 3, 0] += 5e-4  # the second text, the second of the chosen heads: H4
        return replace(passed, weights=weights)

    group = ready(reader, *TEXTS)
    proved = judged_of(reader, group, 1, see)
    assert proved.certified == {"certified": 5, "failed": 1}
    assert [each.why for each in proved.failed] == ["L2 H4 not as recomputed"]
    assert [each.line for each in proved.failed] == [2]
    assert judged_of(reader, group, 2, see).certified == {"certified": 6}


def test_a_kernel_that_answers_something_else_fails_in_the_layer_where_it_does(
    reader: BatchReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnscope.capture.following import takeover

    real = takeover.KernelInputs.answer

    def answer(given: Any) -> Any:
        output, weights = real(given)
        if given.module is second:
            output = output.clone()
            output[0, 2, 7] *= 1.01  # a row, a query, a head
        return output, weights

    second = reader.passing.rung.watched[2].module  # type: ignore[union-attr]
    monkeypatch.setattr(takeover.KernelInputs, "answer", answer)
    proved = judged_of(reader, ready(reader, TEXTS[2]), 0)
    assert [each.why for each in proved.failed] == ["L2 H7 not as recomputed"]


def test_a_text_that_is_alone_takes_no_run_beyond_that_which_measures_it(reader: BatchReader) -> None:
    runs = []
    embeddings = next(iter(reader.model.module.children()))
    with changed(embeddings, lambda *_: runs.append(1)):
        reader.values(ready(reader, TEXTS[1]))
        assert len(runs) == 1
        alone = judged_of(reader, ready(reader, TEXTS[1]), 0)
        assert len(runs) == 2
        among = judged_of(reader, group := ready(reader, *TEXTS), 0)
        assert len(runs) == 4  # and once alone
    assert (alone.held, alone.queries, among.held) == (0, len(ready(reader, TEXTS[1])[0]), len(group[0]))


def test_heads_whose_answers_could_not_be_tried_are_counted(reader: BatchReader) -> None:
    group, tried = ready(reader, TEXTS[1]), dict(reader.tried)
    assert judged_of(reader, group, 0).untried == 0
    reader.tried[2] = replace(tried[2], reach={1: Reach(Effect.UNKNOWN), 7: Reach(Effect.OWN)})
    try:
        proved = judged_of(reader, group, 0)
    finally:
        reader.tried.update(tried)
    assert proved.untried == 2  # L2 H1, which was not told, and L2 H4, of which nothing is known
    assert proved.merged(Proved(untried=1)).untried == 2


def test_what_is_mixed_before_the_attention_of_a_layer_is_said_of_the_corpus(reader: BatchReader) -> None:
    group, tried = ready(reader, TEXTS[1]), dict(reader.tried)
    assert judged_of(reader, group, 0).beside == ()
    reader.tried[2] = replace(tried[2], standing=Standing.MIXED)
    try:
        proved = judged_of(reader, group, 0)
    finally:
        reader.tried.update(tried)
    assert proved.beside == (f"L2: {MIXED}",)
    assert proved.merged(Proved(beside=("L2: another", *proved.beside))).beside == (
        *proved.beside,
        "L2: another",
    )


def test_a_layer_is_let_go_of_before_the_next_one_is_judged(reader: BatchReader) -> None:
    seen: list[Any] = []

    def see(number: int, passed: Passed) -> Passed:
        assert all(each() is None for each in seen)
        assert passed.call is not None
        seen.append(weakref.ref(passed.call.q))
        return passed

    judged_of(reader, ready(reader, TEXTS[2]), 0, see)
    assert len(seen) == 2


@pytest.mark.parametrize("rolled", ["value", "query key value and back"])
def test_a_layer_whose_positions_are_not_the_tokens_is_not_certified_in_any_text(rolled: str) -> None:
    """`attnscope heads` calls the first three partial, the last it numbers; a corpus counts by tokens."""
    recipe = demo.CorpusRecipe(demo.ModelRequest("demo"), demo.WANTED, ("entropy",), longest=98)
    opened = recipe.open()
    module = opened.reader.passing.rung.watched[2].module  # type: ignore[union-attr]
    with ExitStack() as open_while:
        for name in {"query", "key", "value"}.intersection(rolled.split()):
            by = changed(getattr(module, name), lambda _module, _inputs, made: made.roll(1, dims=1))
            open_while.enter_context(by)
        if "back" in rolled:

            def back(_module: Any, _inputs: Any, made: Any) -> Any:
                return made[0].roll(-1, dims=1), *made[1:]

            open_while.enter_context(changed(module, back))
        other = BatchReader(recipe, _Again(opened.reader))
        proved = judged_of(other, ready(other, TEXTS[2]), 0)
    assert proved.certified == {Verdict.CERTIFIED.value: 3, Verdict.PARTIAL.value: 3}


class _Again:
    """What was opened, for another reader."""

    def __init__(self, reader: BatchReader) -> None:
        self.chosen, self.model = reader.chosen, self
        self._model = reader.model

    def settled(self) -> Any:
        return self._model
