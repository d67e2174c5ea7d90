"""Gold for `attnscope align`: what the generators of the bundled models know of their sentences and clips.

`python -m attnscope.demo.train.evaluation.gold links 50 learn > learn.txt` writes pairs of sentences with
their links, `gold times 30 judge clips` a folder of clips and `clips/times.tsv`. Those of `learn` and of
`judge` are two sets, and a number makes another one; no model was trained on any.
"""

from __future__ import annotations

import sys
import wave
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from attnscope.demo.train.corpora import translation
from attnscope.demo.train.evaluation import alignment
from attnscope.demo.train.evaluation.speech import evaluated
from attnscope.demo.train.sound.clips import Clip
from attnscope.demo.train.sound.voice import RATE

SEEDS = {"learn": alignment.SELECTION, "judge": alignment.REPORTED}
PARTS = {"learn": ("selection", 0), "judge": ("reported", 0)}


def links(count: int, part: str) -> Iterator[str]:
    """Lines of `source ||| target ||| links`; words that an apostrophe joins are one."""
    for pair in translation.held_out_sentences(SEEDS.get(part) or int(part), count):
        (source, english), (target, french) = glued(pair.english), glued(pair.french)
        linked = {(english[place], french[i]) for i, places in enumerate(pair.sources) for place in places}
        yield f"{source} ||| {target} ||| {' '.join(f'{i}-{j}' for i, j in sorted(linked))}"


def glued(words: Sequence[str]) -> tuple[str, list[int]]:
    """The words as a text, and which word between its blanks each of them is in: n'utilise, wasn't."""
    text, numbers = "", list[int]()
    for word in words:
        apart = text and not text.endswith("'") and "'" not in word[:-1]
        text += f" {word}" if apart else word
        numbers.append(text.count(" "))
    return text, numbers


def word_times(clip: Clip) -> Iterator[tuple[str, float, float]]:
    """Each word of a clip, from its first syllable to its last."""
    at = 0
    for word in clip.words:
        yield "".join(word), clip.times[at][0], clip.times[at + len(word) - 1][1]
        at += len(word)


def times(count: int, part: str, folder: Path) -> Iterator[str]:
    """Lines of sound, word, begin and end; the sounds are written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    stream, first = PARTS.get(part) or ("reported", int(part))
    for number, clip in enumerate(evaluated(stream, count, first=first)):
        name = f"{part}-{number:03}.wav"
        with wave.open(str(folder / name), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes((np.clip(clip.sound, -1, 1) * 32767).astype("<i2").tobytes())
        for word, begin, end in word_times(clip):
            yield f"{name}\t{word}\t{begin:.3f}\t{end:.3f}"


if __name__ == "__main__":
    what, number, chosen, *where = sys.argv[1:]
    if what == "links":
        print("\n".join(links(int(number), chosen)))
    else:
        place = Path(where[0])
        told = "\n".join(times(int(number), chosen, place)) + "\n"
        (place / "times.tsv").write_text(told, encoding="utf-8", newline="\n")
