"""The library as a notebook uses it, on the bundled models."""

import pytest

import attnscope as at

SENTENCE = "I was watching the [MASK] when it opened."


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def model() -> at.Model:
    return at.load("demo")


@pytest.fixture(scope="session")
def reading(model: at.Model) -> at.Reading:
    return model.read(SENTENCE)
