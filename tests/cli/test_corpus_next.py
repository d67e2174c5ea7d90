"""What a corpus leads on to reads the same texts in the same way."""

from pathlib import Path

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
