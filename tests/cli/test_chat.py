"""Chats on the command line: read by the model's template, named by role, said again in every command."""

import json
import shlex
from pathlib import Path

import pytest
from chat_models import TEMPLATES, chat_model

from attnscope.render.kit.command import finding, opening
from attnscope.results import load

CHAT = [
    {"role": "system", "content": "You answer briefly."},
    {"role": "user", "content": "Who opened the door?"},
    {"role": "assistant", "content": "The cat opened the door."},
    {"role": "user", "content": "Is it open?"},
]
NOTICE = "is read without the chat template of"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(chat_model(tmp_path_factory.mktemp("chat") / "llama", TEMPLATES["llama3"]))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(chat_model(tmp_path_factory.mktemp("chat") / "bare", None))


@pytest.fixture(scope="module")
def mistral(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(chat_model(tmp_path_factory.mktemp("chat") / "mistral", TEMPLATES["mistral"]))


@pytest.fixture
def chat(tmp_path: Path) -> str:
    file = tmp_path / "a chat.json"
    file.write_text(json.dumps(CHAT), encoding="utf-8")
    return str(file)


def head_of(attnscope, *arguments: str) -> dict:
    told = attnscope("heads", *arguments, "--head", "L1H2", "--json")
    assert told.exit_code == 0, told.stderr
    return json.loads(told.stdout)


def test_weights_between_messages_are_sums_over_keys_and_means_over_queries(attnscope, llama, chat) -> None:
    whole = head_of(attnscope, "--chat", chat, "-m", llama)
    parts = [each for each in whole["query_stretches"] if each["of"] == "section"]
    assert [each["name"] for each in parts] == ["system", "user", "assistant", "user"]
    assistant, user = (range(each["first"], each["first"] + each["count"]) for each in parts[2:])
    meant = sum(whole["weights"][query][key] for query in user for key in assistant) / len(user)
    options = ("--query", "role:user#2", "--key", "role:assistant")
    seen = head_of(attnscope, "--chat", chat, "-m", llama, *options)
    names = [each["text"] for each in seen["row_tokens"]]
    row, column = names.index("role:user#2"), names.index("role:assistant")
    assert seen["weights"][row][column] == pytest.approx(meant, abs=1e-9)


def words_of(command: str) -> list[str]:
    return shlex.split(command)[1:]


def test_a_stored_chat_is_opened_from_its_file_beside_which_one_is(
    attnscope, llama, chat, tmp_path, monkeypatch
) -> None:
    options = ("--query", "role:user#2", "--key", "role:assistant")
    for name, more in (("whole.npz", ()), ("seen.npz", options)):
        stored = tmp_path / name
        attnscope("heads", "--chat", chat, "-m", llama, *more, "-o", str(stored))
        shown = attnscope("show", str(stored))
        assert shown.exit_code == 0, shown.stderr
        assert "messages: system 1-10" in shown.stdout
        assert attnscope("check", str(stored)).exit_code == 0
    whole, seen = load(tmp_path / "whole.npz"), load(tmp_path / "seen.npz")
    monkeypatch.chdir(Path(chat).parent)
    words = words_of(opening(whole, 1, 2))
    assert words[words.index("--chat") + 1] == Path(chat).name, "without the folder, which is of one machine"
    assert attnscope(*words).exit_code == 0
    names = seen.query_tokens.names
    asked = finding(seen, names.index("role:user#2"), names.index("role:assistant"))
    assert asked.endswith("--from 'role:user#2' --to role:assistant")
    assert attnscope(*words_of(asked)).exit_code == 0


def test_a_bare_text_is_told_that_there_is_a_template_and_how_to_have_it(attnscope, llama, bare) -> None:
    told = attnscope("heads", "Is it open?", "-m", llama)
    assert f"the text {NOTICE} {llama}: --system ''" in told.stderr
    assert NOTICE not in attnscope("heads", "Is it open?", "-m", bare).stderr
    assert NOTICE not in attnscope("heads", "Is it open?", "-m", llama, "--system", "").stderr
    assert NOTICE not in attnscope("heads", "--ids", "0,30,40", "-m", llama).stderr


def test_a_text_becomes_the_users_message_behind_a_system_message_or_alone(
    attnscope, llama, tmp_path
) -> None:
    told = attnscope("heads", "Is it open?", "-m", llama, "--system", "You answer briefly.")
    assert "messages: system 1-10, user 11-20" in told.stdout
    assert "--system 'You answer briefly.'" in told.stdout.replace("\\\n", " ")
    alone = attnscope("heads", "Is it open?", "-m", llama, "--system", "")
    assert "messages: user 1-10" in alone.stdout
    assert "--system ''" in alone.stdout.replace("\\\n", " ")
    (tmp_path / "lines.txt").write_text("Is it open?\nWho opened the door?\n", encoding="utf-8")
    lines = attnscope("heads", "--texts", str(tmp_path / "lines.txt"), "-m", llama, "--system", "Be brief.")
    assert lines.stdout.count("messages: system 1-") == 2, "every line is a user's message"


def test_a_chat_comes_by_standard_input(attnscope, llama) -> None:
    told = attnscope("heads", "--chat", "-", "-m", llama, stdin=json.dumps(CHAT))
    assert "messages: system 1-10, user 11-21" in told.stdout
    assert "--chat - < your-chat-file" in " ".join(told.stdout.replace("\\\n", " ").split())


def test_what_the_model_goes_on_with_is_the_assistants_message(attnscope, llama, chat) -> None:
    told = attnscope("heads", "--chat", chat, "-m", llama, "--generate", "4")
    assert "user 36-45, assistant 46-55" in told.stdout


@pytest.mark.parametrize(
    "command", [("flow", "--from", "pos:last"), ("predict",), ("verify",)], ids=lambda command: command[0]
)
def test_commands_that_read_a_text_read_a_chat(attnscope, llama, chat, command) -> None:
    told = attnscope(*command, "--chat", chat, "-m", llama)
    assert told.exit_code == 0, told.stderr
    assert "messages: system 1-10, user 11-21, assistant 22-35, user 36-45" in told.stdout


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("TEXT --chat CHAT", "--chat is all that is read: leave TEXT out"),
        ("--ids 1,2 --chat CHAT", "--chat is all that is read: leave --ids out"),
        ("--chat CHAT --system x", "begins with a system message already"),
        ("--system x", "give a text to read"),
        ("--ids 1,2 --system x", "--system is the system message of a chat: leave --ids out"),
        ("--chat nowhere.json", "cannot read the chat 'nowhere.json': no such file"),
        ("--chat CHAT --texts CHAT", "--texts is all that is read: leave --chat out"),
        ("--chat CHAT --query role:user --layer 1 --head 1", "'role:user' stands 2 times"),
        ("--chat CHAT --query role:tool --layer 1 --head 1", "no role 'role:tool'"),
        ("TEXT --query role:user --layer 1 --head 1", "the text is no chat: --chat reads"),
        ("--ids 0,30 --query @7 --layer 1 --head 1", "no token 7 in the input"),
    ],
)
def test_what_does_not_go_together_or_is_not_there_is_one_line_before_weights(
    refused, no_weights, llama, chat, asked, says
) -> None:
    refused(says, "heads", *(chat if each == "CHAT" else each for each in asked.split()), "-m", llama)


def test_a_model_without_a_template_and_a_chat_that_it_refuses_are_told_before_weights(
    refused, no_weights, bare, mistral, chat, tmp_path
) -> None:
    for command in ("heads", "predict", "verify", "ablate"):
        refused("has no chat template", command, "--chat", chat, "-m", bare)
    twice = tmp_path / "twice.json"
    twice.write_text(json.dumps([CHAT[1], CHAT[3]]), encoding="utf-8")
    alternate = "does not take the chat: Conversation roles must alternate"
    refused(alternate, "heads", "--chat", str(twice), "-m", mistral)
    asked = ("find", "--chat", chat, "-m", mistral, "--from", "role:user", "--to", "cat")
    refused("first message alone: A user message has to come first", *asked)
