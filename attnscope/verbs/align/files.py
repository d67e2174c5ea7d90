"""Links and times as other programs read them."""

from collections.abc import Iterator

from attnscope.printable import printable
from attnscope.verbs.align.result import Alignment, Timing


def as_pharaoh(result: Alignment) -> str:
    return f"{result.pharaoh}\n"


def links_as_tsv(result: Alignment) -> str:
    """A link a line: the numbers of both words, the words, the strength and, by gold, the chance."""
    lines = ["source\ttarget\tsource_word\ttarget_word\tstrength\tconfidence"]
    for link in result.links:
        said = "" if link.confidence is None else f"{link.confidence:.6g}"
        pair = _field(result.key_tokens.names[link.key]), _field(result.query_tokens.names[link.query])
        lines.append("\t".join((str(link.key), str(link.query), *pair, f"{link.strength:.6g}", said)))
    return "\n".join(lines) + "\n"


def times_as_tsv(result: Timing) -> str:
    """A word a line, as gold has it."""
    return "".join(
        f"{_field(word)}\t{each.begin:.3f}\t{each.end:.3f}\n"
        for word, each in zip(result.query_tokens.names, result.times, strict=True)
    )


def as_srt(result: Timing) -> str:
    """SubRip: numbered cues, a comma before the milliseconds."""
    cues = enumerate(_cues(result, ","), start=1)
    return "\n".join(f"{number}\n{times}\n{word}\n" for number, (times, word) in cues)


def as_vtt(result: Timing) -> str:
    """WebVTT, in which & and < are markup."""
    return "WEBVTT\n\n" + "\n".join(
        f"{times}\n{word.replace('&', '&amp;').replace('<', '&lt;')}\n" for times, word in _cues(result, ".")
    )


def _cues(result: Timing, mark: str) -> Iterator[tuple[str, str]]:
    for word, each in zip(result.query_tokens.names, result.times, strict=True):
        yield f"{_clock(each.begin, mark)} --> {_clock(each.end, mark)}", _field(word)


def _clock(seconds: float, mark: str) -> str:
    whole = round(1000 * seconds)
    minutes, rest = divmod(whole, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{mark}{rest % 1000:03}"


def _field(word: str) -> str:
    return " ".join(printable(word).split())
