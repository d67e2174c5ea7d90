"""A model whose rows are not those of the tokens in their place: no word is answered for by another row."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

import attnscope as at
from attnscope.attention import MIXED
from attnscope.errors import InputError
from attnscope.vocabulary import Standing

SENTENCE, TRANSLATION = "The red door opened.", "la porte rouge s'est ouverte."
TEXT = "I was watching the [MASK] when it opened."
TREEBANK = "1\tit\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\topened\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


@contextmanager
def rolled(module: nn.Module) -> Iterator[None]:
    """While open, row i of what the module returns is that of token i - 1."""

    def roll(_module: nn.Module, _given: Any, made: Any) -> Any:
        if isinstance(made, Tensor):
            return made.roll(1, dims=1)
        if isinstance(made, tuple):
            return (made[0].roll(1, dims=1), *made[1:])
        made.last_hidden_state = made.last_hidden_state.roll(1, dims=1)
        return made

    hook = module.register_forward_hook(roll)
    yield
    hook.remove()


def refused(ask: Callable[[], object], layers: str) -> None:
    with pytest.raises(InputError, match=f"rows of L{layers} are not the tokens in their place"):
        ask()


def test_words_are_neither_linked_nor_cut_where_the_encoder_answers_in_another_order() -> None:
    model = at.load("demo-translate")
    with rolled(model.module.get_encoder()):
        reading = model.read(SENTENCE, target=TRANSLATION)
        refused(reading.align, "0-3")
        refused(lambda: reading.ablate(heads="L2H3", kind="cross", link="rouge->red"), "2")
        refused(lambda: reading.ablate(part="head", heads="L2H3", kind="cross", link="rouge->pos:each"), "2")
        # the rows that ask in it are those of the tokens that the decoder reads
        answered = reading.ablate(part="head", heads="L2H3", kind="cross", at="rouge")
    assert answered.places[0].positions == (3,)


def test_what_a_layer_hands_on_is_at_a_token_up_to_the_one_that_exchanges_its_rows() -> None:
    model = at.load("demo")
    reading, layers = model.read(TEXT), model.module.base_model.encoder.layer
    for last, displaced in ((3, "3"), (1, "1-3")):
        with rolled(layers[last]):
            refused(lambda: reading.ablate(part="residual", at="it"), displaced)
            refused(lambda: reading.ablate(part="residual", at="pos:each"), displaced)
            before = reading.ablate(part="residual", at="it", layers=list(range(last)))
            assert {each.positions for each in before.places} == {(7,)}
            assert reading.ablate(part="mlp", at="it", layers=last).places[0].layer == last  # made before
            assert len(reading.ablate(part="residual").places) == 4  # of no token


def test_layers_of_which_some_have_other_rows_are_called_by_number_together() -> None:
    model = at.load("demo")
    reading = model.read(TEXT)
    with rolled(model.module.base_model.encoder.layer[1]):
        with pytest.raises(InputError, match="no token 'it' in the input: tokens are 0"):
            reading.find("it", "watching", controls=1)
        assert reading.find("it", "watching", controls=1, layers="0-1").question.query == 7
        refused(lambda: reading.flow("@7"), "2-3")
        refused(lambda: at.compare(reading, reading, "it"), "2-3")
        for found in (reading.overview(), reading.grid()):
            assert found.query_tokens.names == found.key_tokens.names == tuple(map(str, range(11)))


def test_relations_and_facts_are_not_told_of_other_rows(tmp_path: Path) -> None:
    bank = tmp_path / "one.conllu"
    bank.write_text(TREEBANK)
    encoder, reader = at.load("demo"), at.load("demo-reader")
    assert encoder.dependencies(bank).treebank.scored == 1
    with rolled(encoder.module.base_model.embeddings):
        refused(lambda: encoder.dependencies(bank), "0-3")
    with rolled(reader.module.base_model.embed_tokens):
        refused(lambda: reader.retrieval(lengths=(60,), needles=2), "0-2")
        asked = reader.read("the boat is red.\n\nthe door is blue.\n\nthe boat is")
        refused(lambda: asked.cite(answer=" red"), "0-2")


@contextmanager
def mixed(module: nn.Module, share: float) -> Iterator[None]:
    """While open, each row that the module is given has a share of the token before."""
    hook = module.register_forward_pre_hook(
        lambda _, given: ((1 - share) * given[0] + share * given[0].roll(1, dims=1), *given[1:])
    )
    yield
    hook.remove()


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_that_rows_are_mixed_before_an_attention_is_said_wherever_its_heads_are(share: float) -> None:
    model = at.load("demo")
    with mixed(model.module.bert.encoder.layer[2].attention.self, share):
        reading = model.read(TEXT)
        found = (
            reading.overview(),
            reading.find(6, 5, controls=9),
            reading.links(controls=9),
            reading.verify(),
        )
        one = reading.head(2, 3), reading.head(1, 3)
    said = [[each for each in result.notes if MIXED in each] for result in found]
    assert said == [[f"L2: {MIXED}"] * (share > 0)] * 4
    assert [each.certificate.positions for each in one] == [
        Standing.MIXED if share else Standing.OWN,
        Standing.OWN,
    ]
