"""What a corpus leads on to reads the same texts in the same way."""

from pathlib import Path

import made_corpus
from typer.testing import CliRunner

from attnscope.cli.app import app
from attnscope.cli.commands.corpus import CorpusRead


def test_only_what_departs_from_the_usual_is_said_again(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("One.\n")
    assert list(CorpusRead([str(file)]).departures) == []
    every = CorpusRead([str(file)], form="jsonl", field="my text", limit=8, longest=64, truncate=True)
    assert list(every.departures) == [
        "--format jsonl",
        "--field 'my text'",
        "--limit 8",
        "--longest 64",
        "--truncate",
    ]


def test_two_stored_corpora_are_a_page_and_a_table_too(tmp_path: Path) -> None:
    for name, result in (("a.npz", made_corpus.corpus()), ("b.npz", made_corpus.corpus("other.txt", 30, 1))):
        result.save(tmp_path / name)
    files = [str(tmp_path / name) for name in ("a.npz", "b.npz", "ab.html", "ab.csv")]
    done = CliRunner().invoke(app, ["compare", *files[:2], "-q", "-o", files[2], "-o", files[3]])
    assert done.exit_code == 0, done.output
    assert '<table class="heads' in (tmp_path / "ab.html").read_text()
    assert "length_alone" in (tmp_path / "ab.csv").read_text()
