"""The page as a file: what stands in it, what may run in it, what is refused."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import made_every
import made_results as made
import numpy as np
import pytest

from attnscope.errors import InputError
from attnscope.render.saving import content
from attnscope.render.web import page as pages
from attnscope.results import Verdict
from attnscope.version import __version__


class Elements(HTMLParser):
    """Every element of a page with its attributes and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.within = False
        self.feed(text)

    def handle_starttag(self, tag, attributes) -> None:
        self.found.append((tag, dict(attributes), ""))
        self.within = True

    def handle_endtag(self, tag) -> None:
        self.within = False

    def handle_data(self, data) -> None:
        if self.within:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data

    def of(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


@pytest.fixture(scope="module")
def head():
    return made.head()


@pytest.fixture(scope="module")
def text(head) -> str:
    return content(head, ".html").decode()


def document_of(text: str) -> dict:
    return json.loads(
        next(words for told, words in Elements(text).of("script") if told.get("id") == "document")
    )


def block(text: str, name: str) -> bytes:
    packed = next(words for told, words in Elements(text).of("script") if told.get("id") == name)
    return zlib.decompress(base64.b64decode(packed))


def test_the_policy_knows_its_own_scripts_by_their_hashes_and_lets_nothing_else_in(text) -> None:
    policy = next(told["content"] for told, _ in Elements(text).of("meta") if "http-equiv" in told)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    run = [words for told, words in Elements(text).of("script") if "type" not in told]
    hashes = [
        base64.b64encode(hashlib.sha256(each).digest()).decode()
        for each in (block(text, "code"), run[0].encode())
    ]
    assert len(run) == 1
    assert rules["script-src"] == " ".join(f"'sha256-{each}'" for each in hashes)
    assert rules["default-src"] == "'none'"
    drawn = {"style-src", "img-src", "media-src", "script-src"}
    assert set(rules) == {"default-src", *drawn, "base-uri", "form-action"}
    assert {rules[each] for each in ("img-src", "media-src")} == {"data:"}


def test_nothing_in_the_page_stands_elsewhere(text) -> None:
    whole = text + block(text, "code").decode()
    assert (
        re.findall(r"https?://[^\s\"'<]+", whole) == ["http://www.w3.org/2000/svg"] * 2
    )  # the name of a language
    for _, told, _ in Elements(text).found:
        asked = [told[name] for name in ("src", "href", "action", "srcset") if name in told]
        assert all(each.startswith("data:") for each in asked)


@pytest.mark.parametrize("kind", made_every.TOGETHER)
def test_a_result_has_the_same_page_each_time(kind) -> None:
    result = made_every.every()[kind]
    first = content(result, ".html")
    assert first == content(result, ".html")
    told = document_of(first.decode())
    assert told["heading"]
    assert told["verdict"] == ("none" if result.verdict is None else result.verdict.value)


def test_a_hostile_text_stands_in_the_page_as_text_alone() -> None:
    text = content(made_every.hostile(), ".html").decode()
    assert made_every.HOSTILE not in text
    assert not any(name.startswith("on") for _, told, _ in Elements(text).found for name in told)
    assert document_of(text)["readings"][0]["queries"]["names"][0] == made_every.HOSTILE
    assert {name for name, _, _ in Elements(text).found} <= {
        "html", "head", "meta", "link", "title", "style", "body", "header", "h1", "p", "b", "span",
        "noscript", "div", "aside", "details", "summary", "code",
        "nav", "main", "section", "footer", "script",
    }  # fmt: skip


def test_what_a_title_holds_is_never_taken_for_a_part_of_the_frame(head) -> None:
    named = replace(head, provenance=replace(head.provenance, model="{{script}} {{document}}"))
    assert document_of(content(named, ".html").decode())["heading"].count("{{script}} {{document}}") == 1


def test_a_failed_certificate_stands_in_the_page_itself_and_not_only_in_what_its_scripts_draw(head) -> None:
    failed = replace(head, certificate=replace(head.certificate, verdict=Verdict.FAILED))
    told = [
        words
        for attributes, words in Elements(content(failed, ".html").decode()).of("p")
        if attributes.get("role") == "alert"
    ]
    assert told == ["✗ The certificate FAILED: do not trust these numbers."]
    assert 'role="alert"' not in content(head, ".html").decode().split("<script")[0]


def test_a_head_in_full_is_there_in_single_precision(head, text) -> None:
    full = document_of(text)["readings"][0]["full"][f"L{head.layer}H{head.head}"]
    for name, exact in (("q", head.q), ("k", head.k), ("scores", head.scores)):
        read = np.frombuffer(block(text, full[name]), "<f4").reshape(exact.shape)
        np.testing.assert_allclose(read, exact, rtol=1e-6)


def test_a_page_that_is_too_large_is_refused_with_what_to_leave_out(monkeypatch) -> None:
    monkeypatch.setattr(pages, "HARD_BYTES", 50_000)
    with pytest.raises(InputError, match=r"72 heads over 13 tokens .*\(--layer, --head\)") as refused:
        content(made.overview(6, 12), ".html")
    assert refused.value.exit_code == 2


def test_the_frame_of_a_page_is_as_it_was(text) -> None:
    """The whole file but for its data, its script and its style."""
    bare = re.sub(r'(<script type="application/[\w-]+" id="\w+">)[^<]*', r"\1", text)
    bare = re.sub(r"<script>.*?</script>", "<script></script>", bare, flags=re.DOTALL)
    bare = re.sub(r"<style>.*?</style>", "<style></style>", bare, flags=re.DOTALL)
    bare = re.sub(r"'sha256-[^']+'", "'sha256-'", bare)
    bare = re.sub('(data:image/png;base64,)[^"]*', r"\1", bare).replace(__version__, "VERSION")
    golden = Path(__file__).parent / "frame.html"
    assert bare == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "there", "absent"),
    [
        ("HeadAttention", {"text", "matrix", "score"}, {"grid", "map", "board", "both"}),
        ("Overview", {"text", "grid", "lines"}, {"map", "board", "both", "score"}),
        ("Projection", {"map", "matrix"}, {"board", "both", "grid"}),
        ("PictureHeads", {"board", "grid"}, {"map", "both"}),
        ("Difference", {"both"}, {"map", "board"}),
        ("Verification", {"proof"}, {"text", "matrix", "lines", "lists", "score", "board", "both"}),
    ],
)
def test_a_page_holds_the_scripts_of_its_blocks_and_no_others(kind, there, absent) -> None:
    told = block(content(made_every.every()[kind], ".html").decode(), "code").decode()
    left_out = set(re.findall(r"const \$(\w+) = \{\};", told))
    assert absent <= left_out
    assert not there & left_out


def test_the_style_of_what_scripts_draw_is_deflated_and_that_of_the_answer_is_not(text) -> None:
    plain = next(words for _, words in Elements(text).of("style"))
    later = block(text, "look").decode()
    for selector in ("h1", ".ranking", ".alarm", "footer"):
        assert f"{selector}{{" in plain
    for selector in ("#tabs", "#lists", ".text", ".ruler"):
        assert f"{selector}{{" in later
        assert f"{selector}{{" not in plain


def numbers_of(result: object) -> tuple[list[list[object]], int]:
    """The table of numbers of a page, unpacked here, and of how many rows it says it is."""
    page = content(result, ".html").decode()
    told = json.loads(re.search(r'<script[^>]*id="document"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    packed = re.search(rf'<script[^>]*id="{told["rows"]}"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed))), told["every_row"]


def test_a_token_that_looks_like_a_number_stays_what_it_is() -> None:
    plain = made.overview(2, 3, ["007", "1e5", ".", "-"])
    (heading, *rows), every = numbers_of(plain)
    assert every == len(rows) == 6
    at = [i for i, name in enumerate(heading) if name.endswith("token")]
    assert at
    assert all(row[i] in ("007", "1e5", ".", "-") for row in rows for i in at)


def test_rows_that_a_page_has_no_room_for_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (heading, *rows), every = numbers_of(made.overview(3, 4))
    assert len(rows) == every == 12
    monkeypatch.setattr(pages, "_MOST_CELLS", 5 * len(heading))
    (_, *fewer), every = numbers_of(made.overview(3, 4))
    assert (len(fewer), every) == (5, 12)
    assert fewer == rows[:5]
