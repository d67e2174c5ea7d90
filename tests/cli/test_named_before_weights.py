"""What the text has not got, and heads that are not there, are told before any weight is read."""

import pytest

TEXT = "I was watching the door when [MASK] opened."


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("weights were read")

    for place in ("load.load_model", "load.load_with_head", "answering.load_answering"):
        monkeypatch.setattr(f"attnscope.model.loading.{place}", read)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("find", TEXT, "--from", "[MASK]", "--to", "the window"), "no token 'the window' in the input"),
        (("find", TEXT, "--from", "door#2", "--to", "I"), "'door' stands once, #1 is the first"),
        (("find", "the cat saw the cat", "--from", "saw", "--to", "the cat"), "the cat@1, the cat@4"),
        (("find", TEXT, "--words", "--from", "[MASK]", "--to", "window"), "no token 'window'"),
        (("heads", TEXT, "--query", "window"), "no token 'window'"),
        (("heads", TEXT, "--query", "4-99"), "no token 99 in the input: positions 0-10"),
        (("heads", TEXT, "--head", "L9H1"), "no layer 9 in demo"),
        (("heads", TEXT, "--head", "L3H11,L2H10"), "here the same heads of every layer are meant"),
        (
            ("heads", TEXT, "--head", "L3H11", "--show", "q", "--query", "the door"),
            "'4-5 the door' is 2 tokens",
        ),
        (("flow", TEXT, "--from", "the window"), "no token 'the window'"),
        (("tsne", TEXT, "--head", "L3"), "--head L3 are several: this is of one head"),
        (("why", TEXT, "--from", "[MASK]", "--to", "door", "--head", "mean"), "this is of one head"),
        (("ablate", TEXT, "--link", "[MASK]->window"), "no token 'window'"),
        (("ablate", TEXT, "--head", "L3H99"), "no head 99 in demo"),
        (("why", TEXT, "--from", "[MASK]", "--to", "the door"), "why takes one token each"),
        (("tsne", TEXT, "--query", "window"), "no token 'window'"),
        (("tsne", TEXT, "--query", "door", "--compare-query", "the window"), "no token 'the window'"),
        (("tsne", TEXT, "--query", "the door", "--compare-query", "door when"), "share 5 door"),
        (("report", TEXT, "--query", "the door"), "a report is of one query, whose scores and output"),
        (("explain", TEXT, "--from", "[MASK]", "--to", "4-5"), "find and flow take several"),
        (("report", TEXT, "--query", "window"), "no token 'window'"),
    ],
)
def test_a_wrong_name_is_one_line_and_no_weight_is_read(attnscope, arguments, said) -> None:
    result = attnscope(*arguments, "-m", "demo")
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_without_a_wrong_name_weights_would_be_read(attnscope) -> None:
    with pytest.raises(AssertionError, match="weights were read"):
        attnscope("find", TEXT, "--from", "[MASK]", "--to", "the door", "-m", "demo")
