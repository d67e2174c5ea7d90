"""Messages of a chat are drawn as stretches along both axes of a head, where they stand."""

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnscope.model.inputs.chat import chat_of
from attnscope.render.kit.stage import panel
from attnscope.render.plot.heat import draw_head
from attnscope.render.plot.layout import grid, head_frame
from attnscope.session.library.entrance import wrap

matplotlib.use("agg")


@pytest.fixture(scope="module")
def head():
    from chat_models import TEMPLATES, chat_tokenizer
    from transformers import LlamaConfig, LlamaModel

    tokenizer = chat_tokenizer(TEMPLATES["llama3"])
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1,
    )  # fmt: skip
    chat = chat_of(
        [{"role": "user", "content": "Who opened the door?"}, {"role": "assistant", "content": "."}]
    )
    return wrap(LlamaModel(config), tokenizer).read(chat=list(chat.messages)).head(0, 0)


def test_a_line_and_a_name_for_each_message_along_each_axis(head) -> None:
    shown, axes = panel(head, "weights"), Figure().add_subplot()
    draw_head(shown, axes)
    lines = [each for each in axes.lines if isinstance(each, Line2D)]
    across = [each for each in lines if len({*each.get_ydata()}) == 1]
    down = [each for each in lines if each not in across]
    for drawn, ends in ((across, Line2D.get_xdata), (down, Line2D.get_ydata)):
        stretches = [tuple(round(end) for end in ends(each)) for each in drawn]
        assert stretches == [(s.first, s.first + s.count) for s in head.key_tokens.sections]
    named = [text.get_text() for text in axes.texts]
    assert [each for each in named if each in ("user", "assistant")] == ["user", "assistant"] * 2


def test_labels_have_room_beside_the_messages_and_a_text_alone_has_none_of_it(head) -> None:
    from dataclasses import replace

    with_messages = grid(panel(head, "weights"))
    bare = replace(head.query_tokens, marked=())
    without = grid(panel(replace(head, query_tokens=bare, key_tokens=bare), "weights"))
    assert with_messages.left > without.left
    assert with_messages.above > without.above
    shown = panel(replace(head, query_tokens=bare, key_tokens=bare), "weights")
    axes = Figure().add_subplot()
    draw_head(shown, axes)
    assert len(axes.lines) == 0
    assert head_frame(shown).top < head_frame(panel(head, "weights")).top
