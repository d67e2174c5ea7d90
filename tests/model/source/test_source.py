"""Which model is meant, with a hub that is there, slow, refusing, or not there at all."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoints import tiny_bert
from hub_stand_in import COMMIT, empty_cache, served
from huggingface_hub import constants

from attnscope import demo
from attnscope.errors import AttnscopeError, InputError, ModelUnavailableError
from attnscope.model.source import hub
from attnscope.model.source.checkpoint import open_checkpoint
from attnscope.model.source.find import find
from attnscope.model.source.here import check_environment

REPOSITORY = "google-bert/bert-base-uncased"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty_cache(tmp_path / "cache", monkeypatch)


@pytest.fixture
def online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tiny_bert(tmp_path / "served")
    with served(REPOSITORY, folder, monkeypatch):
        yield folder


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")


def problem(name: str | None, **options: str) -> AttnscopeError:
    with pytest.raises(AttnscopeError) as raised:
        find(name, **options)
    assert "\n" not in str(raised.value)
    return raised.value


def test_a_gguf_file_without_the_package_that_reads_it_says_which(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "m.GGUF"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr("attnscope.model.source.find.find_spec", lambda name: None)
    error = problem(str(file))
    assert (error.exit_code, str(error).endswith("pip install 'attnscope[gguf]' puts it in")) == (3, True)
    monkeypatch.setattr("attnscope.model.source.find.find_spec", lambda name: name)
    source = find(str(file))
    assert (source.folder, source.gguf, source.file) == (tmp_path, "m.GGUF", {"gguf_file": "m.GGUF"})
    other = problem(str(file.rename(tmp_path / "m.bin")))
    assert (other.exit_code, "or a .gguf file" in str(other)) == (2, True)


def test_the_default_comes_from_the_hub_and_then_from_the_cache(online: Path, monkeypatch) -> None:
    first = find(None)
    assert (first.requested, first.demo, first.revision) == ("bert-base-uncased", False, COMMIT)
    assert (first.folder / "model.safetensors").read_bytes() == (online / "model.safetensors").read_bytes()
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    assert find(None).folder == first.folder
    assert find("bert-base-uncased").folder == first.folder


def test_a_model_with_only_pickles_is_not_even_downloaded(online: Path) -> None:
    (online / "model.safetensors").rename(online / "pytorch_model.bin")
    assert "--allow-pickle" in str(problem(REPOSITORY))
    assert find(REPOSITORY, allow_pickle=True).folder.joinpath("pytorch_model.bin").is_file()


def test_an_unknown_name_a_gated_model_and_an_unknown_revision_are_told_apart(online: Path) -> None:
    assert "no model 'no/such' on the hub" in str(problem("no/such"))
    assert "is gated" in str(problem("some/gated"))
    assert "has no revision 'no-such-revision'" in str(problem(REPOSITORY, revision="no-such-revision"))
    assert {problem(name).exit_code for name in ("no/such", "some/gated")} == {3}


def test_the_default_is_not_replaced_where_the_hub_answers_no(tmp_path: Path, monkeypatch) -> None:
    with served("another/model", tiny_bert(tmp_path / "served"), monkeypatch):
        assert isinstance(problem(None), ModelUnavailableError)


@pytest.mark.usefixtures("refused")
def test_the_default_falls_back_to_the_demo_only_where_the_hub_cannot_be_reached() -> None:
    source = find(None)
    assert (source.requested, source.name, source.demo) == ("bert-base-uncased", "demo", True)
    assert source.notice is not None
    assert "bundled demo" in source.notice
    assert isinstance(problem(None, revision="main"), hub.HubUnreachableError)


@pytest.mark.usefixtures("refused")
def test_a_named_model_is_never_replaced(monkeypatch) -> None:
    assert problem("bert-base-uncased").exit_code == 3
    monkeypatch.setenv("ATTNSCOPE_MODEL", "my/model")
    assert "my/model" in str(problem(None))


def test_offline_mode_asks_nobody(monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "_connect", lambda *_: pytest.fail("connected"))
    assert "HF_HUB_OFFLINE is set (-m demo is bundled)" in str(problem("my/model"))
    assert find(None).demo


def test_a_look_up_that_never_answers_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(hub, "_CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(hub, "_connect", lambda *_: time.sleep(20))
    started = time.perf_counter()
    assert "no answer" in str(problem("my/model"))
    assert time.perf_counter() - started < 3


def test_a_hub_that_accepts_and_then_says_nothing_times_out_and_is_not_replaced(monkeypatch) -> None:
    monkeypatch.setattr(hub, "_ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        error = problem(None)
    assert error.exit_code == 3
    assert "timed out" in str(error)


def test_a_proxy_is_what_is_tried_where_one_is_set(monkeypatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    assert hub._first_hop() == ("127.0.0.1", 3128)
    monkeypatch.delenv("HTTPS_PROXY")
    assert hub._first_hop() == ("hub.invalid", 443)


@pytest.mark.parametrize(
    "address",
    ["http://localhost:abc", "http://localhost:99999", "http://[::1", "http://a..b", "nonsense", "http://"],
)
def test_an_endpoint_that_is_no_address_is_refused_by_its_name(address: str, monkeypatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(InputError, match="HF_ENDPOINT is not an address: '") as raised:
        check_environment()
    assert address in str(raised.value)
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:8080/hub")
    check_environment()


@pytest.mark.parametrize("variable", ["HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"])
@pytest.mark.parametrize(
    "seconds",
    [
        "nope",
        "1.5",
    ],
)
def test_seconds_that_are_no_number_are_refused_before_the_hub_s_library_is_imported(
    variable: str, seconds: str
) -> None:
    code = "from attnscope.session.opening import find_source\nfrom attnscope.session.listener import Log\n"
    code += "from attnscope.errors import InputError\ntry: find_source('demo', Log())\n"
    code += "except InputError as error: print(error)"
    environment = {**os.environ, variable: seconds}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert told.stdout == f"{variable} is not a number of seconds: '{seconds}': such as 10\n"
    assert told.stderr == ""


def test_a_proxy_that_is_no_address_is_refused_by_its_name(monkeypatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:port")
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    assert "HTTPS_PROXY is not an address: 'http://proxy:port'" in str(problem("my/model"))


def test_names_that_cannot_be_models_are_refused(tmp_path: Path) -> None:
    assert isinstance(problem("a b c"), InputError)
    assert "no folder ./nothing" in str(problem("./nothing"))
    assert "no folder ~nobodyatall/x" in str(problem("~nobodyatall/x"))
    with pytest.raises(ModelUnavailableError, match="no adapter in ~nobodyatall/x"):
        open_checkpoint(find("demo"), adapter="~nobodyatall/x")
    assert "no folder" in str(problem("some/deep/path"))
    file = tmp_path / "model.safetensors"
    shutil.copy(demo.folder() / "config.json", file)
    assert "is a file" in str(problem(str(file)))
