"""A conversation as the model's template writes it: no token too many, and whose each stretch is."""

import json
from pathlib import Path
from typing import Any

import pytest
from chat_models import TEMPLATES, chat_tokenizer
from jinja2.sandbox import ImmutableSandboxedEnvironment

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.model.inputs.given import asked, chat_of, read_chat
from attnscope.model.inputs.rendered import encode_chat, has_template
from attnscope.model.inputs.text import Encoded, encode

SYSTEM = {"role": "system", "content": "You answer briefly."}
WHO = {"role": "user", "content": "Who opened the door?"}
CAT = {"role": "assistant", "content": "The cat opened the door."}
OPEN = {"role": "user", "content": "Is it open?"}


def read(style: str, *messages: dict[str, Any], **settings: Any) -> Encoded:
    chat = chat_of({"messages": list(messages), **settings})
    return encode_chat(chat_tokenizer(TEMPLATES[style]), chat, name="tiny", limit=None)


def texts(encoded: Encoded, *, said: bool = False) -> list[tuple[str, str]]:
    """The role and the text of every section, cut from the source by the spans of its tokens."""
    source, items = encoded.tokens.texts[0], encoded.tokens.items
    cut = []
    for each in encoded.tokens.sections:
        spans = [items[i].span for i in (each.said if said else each.positions)]
        cut.append((each.name, source[spans[0][0] : spans[-1][1]]))
    return cut


@pytest.mark.parametrize("style", TEMPLATES)
def test_the_tokens_are_those_that_the_library_makes_of_the_chat(style: str) -> None:
    tokenizer = chat_tokenizer(TEMPLATES[style])
    for messages, opens in (([WHO], True), ([WHO, CAT], False), ([WHO, CAT, OPEN], True)):
        own = tokenizer.apply_chat_template(messages, add_generation_prompt=opens, tokenize=True)
        encoded = read(style, *messages)
        assert encoded.tokens.ids == tuple(own["input_ids"])
        assert encoded.inputs["input_ids"][0].tolist() == own["input_ids"]


@pytest.mark.parametrize(("style", "begins"), [("chatml", 0), ("llama3", 1), ("qwen", 0), ("mistral", 1)])
def test_the_token_that_begins_a_text_stands_as_often_as_the_template_writes_it(style, begins) -> None:
    encoded = read(style, WHO)
    tokenizer = chat_tokenizer(None)
    assert encoded.tokens.ids.count(tokenizer.bos_token_id) == begins
    told = [each for each in encoded.notices if "in front" in each]
    assert bool(told) is (begins == 0)  # a text would have begun with it
    bare = encode(tokenizer, (encoded.tokens.texts[0],), name="tiny", limit=None)
    assert bare.tokens.ids.count(tokenizer.bos_token_id) == begins + 1
    assert any("puts one in front" in each for each in bare.notices) is (begins == 1)


def test_each_message_is_the_text_that_it_adds() -> None:
    assert texts(read("chatml", SYSTEM, WHO, CAT)) == [
        ("system", "<|im_start|>system\nYou answer briefly.<|im_end|>\n"),
        ("user", "<|im_start|>user\nWho opened the door?<|im_end|>\n"),
        ("assistant", "<|im_start|>assistant\nThe cat opened the door.<|im_end|>\n"),
    ]
    assert texts(read("llama3", WHO, CAT)) == [
        ("user", "<|start_header_id|>user<|end_header_id|>\n\nWho opened the door?<|eot_id|>"),
        ("assistant", "<|start_header_id|>assistant<|end_header_id|>\n\nThe cat opened the door.<|eot_id|>"),
    ]
    assert texts(read("mistral", WHO, CAT, OPEN)) == [
        ("user", "[INST] Who opened the door?[/INST]"),
        ("assistant", " The cat opened the door.</s>"),
        ("user", "[INST] Is it open?[/INST]"),
    ]


@pytest.mark.parametrize("style", ["chatml", "llama3", "qwen"])
def test_what_was_said_is_told_from_what_the_template_puts_around_it(style: str) -> None:
    messages = (SYSTEM, WHO, {"role": "assistant", "content": "assistant user."})
    said = [each["content"] for each in messages]
    assert [text.strip() for _, text in texts(read(style, *messages), said=True)] == said
    tokens = read(style, *messages).tokens
    around = set(range(len(tokens))) - {i for each in tokens.sections for i in each.said}
    assert tokens.of_template == around
    assert around


def test_tools_stand_in_front_and_their_calls_and_answers_are_messages() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"name": "look", "arguments": {"at": "door"}}]}
    answer = {"role": "tool", "content": "it is open"}
    encoded = read("qwen", WHO, call, answer, tools=[{"name": "look"}])
    found = texts(encoded)
    assert [role for role, _ in found] == ["user", "assistant", "tool"]
    assert '"name": "look"' in encoded.tokens.texts[0].partition("<|im_start|>user")[0]
    assert "<tool_call>" in found[1][1]
    assert '"at": "door"' in found[1][1]
    assert found[2][1] == "<|im_start|>tool\nit is open<|im_end|>\n"
    assert encoded.notices == tuple(each for each in encoded.notices if "in front" in each)


def test_thinking_of_the_last_answer_is_read_and_a_setting_of_the_template_acts() -> None:
    thinking = {**CAT, "reasoning_content": "thinking it is open"}
    ((_, _), (_, answer)) = texts(read("qwen", WHO, thinking))
    assert answer.startswith("<|im_start|>assistant\n<think>\nthinking it is open\n</think>\n\nThe cat")
    without = read("qwen", WHO, enable_thinking=False).tokens.texts[0]
    assert without.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_where_an_earlier_message_is_written_otherwise_later_roles_are_refused_with_the_reason() -> None:
    encoded = read("qwen", WHO, {**CAT, "reasoning_content": "thinking"}, OPEN)
    assert encoded.tokens.sections == ()
    with pytest.raises(InputError, match=r"writes the first 2 messages otherwise once message 3 \(user\)"):
        encoded.tokens.span("role:user")
    assert "leaves out reasoning_content of message 2 (assistant)" in " ".join(encoded.notices)


def test_where_the_first_message_cannot_stand_alone_roles_are_refused_with_the_template_s_reason() -> None:
    encoded = read("mistral", SYSTEM, WHO)
    assert encoded.tokens.texts[0] == "<s>[INST] You answer briefly.\n\nWho opened the door?[/INST]"
    with pytest.raises(InputError, match="first message alone: A user message has to come first"):
        encoded.tokens.span("role:user")


@pytest.mark.parametrize(
    ("style", "message", "settings", "told"),
    [
        ("chatml", WHO, {"tools": [{"name": "look"}]}, ["tools"]),
        ("chatml", {**WHO, "name": "Ann"}, {}, ["name of message 1 (user)"]),
        ("llama3", WHO, {"tools": [{"name": "look"}]}, []),
    ],
)
def test_what_the_template_does_not_write_is_told(style, message, settings, told) -> None:
    notices = [each for each in read(style, message, **settings).notices if "leaves out" in each]
    assert notices == [f"the chat template of tiny leaves out {each}" for each in told]


def test_a_chat_that_is_cut_has_the_messages_that_are_left() -> None:
    tokenizer, chat = chat_tokenizer(TEMPLATES["llama3"]), chat_of([WHO, CAT])
    whole = encode_chat(tokenizer, chat, name="tiny", limit=None).tokens
    first = whole.sections[0]
    with pytest.raises(InputError, match="--truncate cuts it"):
        encode_chat(tokenizer, chat, name="tiny", limit=first.count + 1)
    cut = encode_chat(tokenizer, chat, name="tiny", limit=first.count + 1, truncate=True).tokens
    assert cut.sections == (first,)
    assert cut.ids == whole.ids[: first.count + 1]


def test_a_model_without_a_template_takes_no_chat() -> None:
    assert not has_template(chat_tokenizer(None))
    with pytest.raises(InputError, match="tiny has no chat template"):
        encode_chat(chat_tokenizer(None), asked("Who?"), name="tiny", limit=None)


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content * 100000000 }}",
        "{% for i in range(100000) %}{% for j in range(100000) %}a{% endfor %}{% endfor %}",
        "{% set x %}{% for i in range(2000) %}a{% endfor %}{% endset %}{{ x }}",
    ],
)
def test_a_template_that_writes_without_end_is_stopped_in_one_line(
    template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "LONGEST_LINE", 1000)
    before = [getattr(ImmutableSandboxedEnvironment, name) for name in ("concat", "call_binop")]
    with pytest.raises(InputError, match="of tiny does not take the chat: it writes more than 1,000 char"):
        encode_chat(chat_tokenizer(template), asked("a"), name="tiny", limit=None)
    after = [getattr(ImmutableSandboxedEnvironment, name) for name in ("concat", "call_binop")]
    assert after == before, "whoever else renders templates in this process is left alone"


def test_a_template_that_multiplies_a_little_is_taken() -> None:
    tokenizer = chat_tokenizer("{{ 'a' * 3 }}{{ messages[0].content * 2 }}{{ 2 * 3 }}")
    encoded = encode_chat(tokenizer, asked("b"), name="tiny", limit=None)
    assert encoded.tokens.texts == ("aaabb6",)


def test_what_a_template_refuses_is_one_line() -> None:
    with pytest.raises(InputError, match="does not take the chat: Conversation roles must alternate"):
        read("mistral", WHO, OPEN)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ([], "has no messages"),
        ({"tools": []}, 'has no "messages"'),
        ("Who?", "is no conversation"),
        (["Who?"], "message 1 is no message"),
        ([WHO, {"content": "x"}], "message 2 has no role"),
        ([{"role": "user"}], "message 1 (user) has no content"),
        ([{"role": "user", "content": 7}], "its content is no text"),
        ({"messages": [WHO], "tokenize": True}, "'tokenize' is no part of a conversation"),
    ],
)
def test_what_is_no_conversation_is_told_in_one_line(written: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        chat_of(written)
    assert said in str(told.value)
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(InputError) as told:
        read_chat(file)
    assert said in str(told.value)
    assert str(file) in str(told.value)


def test_a_content_in_parts_of_text_is_one_text() -> None:
    parts = [{"type": "text", "text": "Who opened "}, {"type": "text", "text": "the door?"}]
    assert chat_of([{"role": "user", "content": parts}]).messages[0]["content"] == WHO["content"]
