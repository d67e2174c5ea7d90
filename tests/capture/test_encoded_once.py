"""An encoder beside the attention that is read runs once, and nothing that is read is another for it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import transformers as hf
from torch import nn

from attnscope.capture import Selection, record
from attnscope.capture.running import EncodedOnce
from attnscope.vocabulary import Kind

IDS = torch.tensor([[5, 9, 7, 11, 3]])
WRITTEN = torch.tensor([[2, 8, 6, 4]])


def whisper() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    config = hf.WhisperConfig(
        vocab_size=40, d_model=16, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2,
        decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=24, num_mel_bins=8, pad_token_id=0,
        max_source_positions=10, bos_token_id=1, eos_token_id=3, decoder_start_token_id=2,
    )  # fmt: skip
    model = hf.WhisperForConditionalGeneration(config).eval()
    return model, {"input_features": torch.randn(1, 8, 20), "decoder_input_ids": WRITTEN}


def t5() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    config = hf.T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, num_decoder_layers=3,
        decoder_start_token_id=0,
    )  # fmt: skip
    return hf.T5ForConditionalGeneration(config).eval(), {"input_ids": IDS, "decoder_input_ids": WRITTEN}


@contextmanager
def counted(encoder: nn.Module) -> Iterator[list[int]]:
    """How often the encoder's last layer norm is reached."""
    runs = list[int]()
    (last,) = [each for name, each in encoder.named_children() if name in ("layer_norm", "final_layer_norm")]
    with last.register_forward_hook(lambda *_: runs.append(1)):
        yield runs


@pytest.mark.parametrize("make", [whisper, t5])
def test_what_is_read_and_proved_is_the_same_as_with_an_encoder_that_runs_each_time(
    make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, inputs = make()  # type: ignore[operator]
    model.set_attn_implementation("eager")
    with counted(model.get_encoder()) as runs:
        once = record(model, inputs, Selection(kind=Kind.CROSS))
        sound, few = "input_features" in inputs, len(runs)
    monkeypatch.setattr(EncodedOnce, "beside", contextmanager(lambda *_: iter([None])))
    with counted(model.get_encoder()) as runs:
        every = record(model, inputs, Selection(kind=Kind.CROSS))
    # of a text tokens are exchanged, which the encoder has to read; a sound stays as it is
    assert few == (1 if sound else 2)
    assert len(runs) > 3
    for one, other in zip(once.calls, every.calls, strict=True):
        assert torch.equal(one.q, other.q)
        assert torch.equal(one.k, other.k)
        assert torch.equal(one.output, other.output)
        assert (one.standing, one.reach) == (other.standing, other.reach)


def test_copies_are_answered_from_one_and_another_input_is_read() -> None:
    model, _ = t5()
    encoder, once = model.get_encoder(), EncodedOnce(model)
    with counted(encoder) as runs, once.beside([]), torch.no_grad():
        one = encoder(input_ids=IDS).last_hidden_state
        three = encoder(input_ids=IDS.repeat(3, 1)).last_hidden_state
        other = encoder(input_ids=IDS + 1).last_hidden_state
    assert len(runs) == 2
    assert torch.equal(three, one.repeat(3, 1, 1))
    assert not torch.equal(other, one)
    assert "forward" not in vars(encoder)


def test_an_encoder_that_draws_by_lot_is_never_answered_for() -> None:
    model, _ = t5()
    encoder, once = model.get_encoder(), EncodedOnce(model)
    encoder.block[0].register_forward_pre_hook(lambda *_: torch.rand(1) and None)
    with counted(encoder) as runs, once.beside([]), torch.no_grad():
        encoder(input_ids=IDS), encoder(input_ids=IDS)
    assert len(runs) == 2


def written(model: nn.Module, inputs: dict[str, torch.Tensor]) -> EncodedOnce:
    """The encoder as `generate` ran it, which says more of the form of its answer."""
    once = EncodedOnce(model)
    sounds = {name: each for name, each in inputs.items() if name != "decoder_input_ids"}
    with once.beside(()), torch.no_grad():
        model.generate(**sounds, max_new_tokens=2, do_sample=False)
    return once.lend()


def test_what_an_encoder_answered_while_the_model_wrote_is_what_the_next_run_reads_and_no_later_one() -> None:
    torch.manual_seed(0)
    model, inputs = whisper()
    model.set_attn_implementation("eager")
    alone = record(model, inputs, Selection(kind=Kind.CROSS))
    with counted(model.get_encoder()) as runs:
        once = written(model, inputs)
        assert len(runs) == 1
        lent = record(model, inputs, Selection(kind=Kind.CROSS), once=once)
        assert len(runs) == 1
        record(model, inputs, Selection(kind=Kind.CROSS), once=once)
        assert len(runs) == 2
    for one, other in zip(lent.calls, alone.calls, strict=True):
        assert torch.equal(one.k, other.k)
        assert torch.equal(one.output, other.output)
        assert (one.standing, one.reach) == (other.standing, other.reach)


@pytest.mark.parametrize("change", ["weights", "sound", "hook"])
def test_an_encoder_that_was_changed_since_it_was_heard_or_gets_another_sound_runs_again(change: str) -> None:
    torch.manual_seed(0)
    model, inputs = whisper()
    model.set_attn_implementation("eager")
    once = written(model, inputs)
    encoder = model.get_encoder()
    if change == "weights":
        with torch.no_grad():
            encoder.layers[1].fc2.weight.add_(1.0)
    elif change == "sound":
        inputs = {**inputs, "input_features": inputs["input_features"] + 1}
    else:
        encoder.layers[0].register_forward_hook(lambda _module, _given, output: output * 2)
    lent = record(model, inputs, Selection(kind=Kind.CROSS), once=once)
    alone = record(model, inputs, Selection(kind=Kind.CROSS))
    assert all(torch.equal(one.k, other.k) for one, other in zip(lent.calls, alone.calls, strict=True))
