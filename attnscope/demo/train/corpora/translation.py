"""The seeded stream of sentence pairs for the translation model, and what never enters it.

1. The example sentences below, wherever in a document they might stand, and those of `corpus.ARTICLES`.
2. Both words of a held-out pair of adjective and noun, in any form, in either language, in one document.
3. A held-out sentence: one English sentence in 25, by the checksum of `corpus.is_held_out`; short
   forms count as full ones.
"""

from __future__ import annotations

import hashlib
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from attnscope.demo.train.bilingual import french, phrase
from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.french import Agreement
from attnscope.demo.train.bilingual.sentences import sentence
from attnscope.demo.train.corpora import corpus
from attnscope.demo.train.english.inflection import gerund, past, third
from attnscope.demo.train.english.phrases import Speaker

DOCUMENTS = 300_000
AGREEMENTS = [Agreement(feminine, plural) for feminine in (False, True) for plural in (False, True)]
SHORT = {("do does did is are was were", "not"): "n't", ("i", "am"): "'m", ("we they", "are"): "'re"}
LENGTH = 48  # the longest document in tokens, in either language

EXAMPLES = {
    "I was watching the red door when it opened.": ("je regardais la porte rouge quand elle s'est ouverte."),
    "The black cat is sleeping in the green garden.": "le chat noir dort dans le jardin vert.",
    "The king gave the queen a red Italian lamp.": "le roi a donné une lampe italienne rouge à la reine.",
    "The woman bought a broken clock and repaired it.": (
        "la femme a acheté une horloge cassée et l'a réparée."
    ),
    "The man does not have a white car.": "l'homme n'a pas de voiture blanche.",
    "Mary was looking for the king's lost dogs because they were tired.": (
        "mary cherchait les chiens perdus du roi parce qu'ils étaient fatigués."
    ),
}


@dataclass(frozen=True)
class Pair:
    """English and French words; for each French word the places of the English ones that it stands for."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    sources: tuple[tuple[int, ...], ...]
    roles: tuple[str, ...]  # "noun", "adjective" or ""

    def __add__(self, other: Pair) -> Pair:
        by = len(self.english)
        moved = tuple(tuple(place + by for place in places) for places in other.sources)
        return Pair(
            self.english + other.english,
            self.french + other.french,
            self.sources + moved,
            self.roles + other.roles,
        )

    @property
    def length(self) -> int:
        """The words of the longer side."""
        return max(len(self.english), len(self.french))


def pair_of(said: phrase.Phrase) -> Pair:
    """A phrase as it is written."""
    words = phrase.spell(said.french)
    return Pair(
        said.english,
        tuple(word.text for word in words),
        tuple(word.sources for word in words),
        tuple(word.role for word in words),
    )


def shortened(pair: Pair) -> Pair:
    """The same pair with "n't", "'m" and "'re" wherever they are possible; no word changes its place."""
    words = list(pair.english)
    for place in range(1, len(words)):
        for (before, full), short in SHORT.items():
            if words[place - 1] in before.split() and words[place] == full:
                words[place] = short
    return replace(pair, english=tuple(words))


def in_full(words: Iterable[str]) -> tuple[str, ...]:
    """English words with every short form written out."""
    full = {short: whole for (_, whole), short in SHORT.items()}
    return tuple(full.get(word, word) for word in words)


def written(words: Iterable[str]) -> str:
    """Words as ordinary text: "l' homme dort ." becomes "l'homme dort."."""
    text = re.sub(r" (n't|'s|'m|'re)\b", r"\1", " ".join(words)).replace("' ", "'")
    return text.replace(" .", ".").replace(" ,", ",")


def sentences(words: Iterable[str]) -> list[str]:
    """The sentences of a document without their final stop, words split by spaces."""
    return [text.strip() for text in " ".join(words).split(" .") if text.strip()]


def _kinds() -> Iterator[tuple[tuple[lex.Noun, ...], tuple[str, ...]]]:
    """Nouns with the groups of adjectives that they are seen with."""
    for kind in lex.THINGS + lex.ANIMALS:
        yield kind.nouns, kind.like
    yield lex.HE + lex.SHE, ("person", "nation")
    yield lex.PUBLIC + lex.INSIDE + lex.SURFACES, ("place", "colour")


def _forms(adjective: lex.Adjective) -> frozenset[str]:
    """Every form of an adjective in both languages, marked by the language."""
    french_ = {adjective.form(agreement) for agreement in AGREEMENTS}
    return frozenset({f"en {adjective.english}", *(f"fr {form}" for form in french_)})


@cache
def _verb_forms() -> frozenset[str]:
    """Every form of every verb, marked by the language: "lost" and "ouvert" are among them."""
    forms = set()
    for verb in (*lex.VERBS.values(), *lex.REFLEXIVE.values()):
        forms |= {f"en {form(verb.english).split()[0]}" for form in (str, past, third, gerund)}
        forms |= {f"fr {french.participle(verb.french, agreement)}" for agreement in AGREEMENTS}
        forms |= {f"fr {form}" for form in french.present(verb.french)}
    return frozenset(forms)


@cache
def held_out_pairs() -> tuple[tuple[lex.Adjective, lex.Noun], ...]:
    """Adjective and noun of every held-out pair: a checksum's choice among all that the classes allow.

    Adjectives that are also forms of a verb are left alone, since the verb must be learned.
    """
    pairs = {}
    for nouns, groups in _kinds():
        for adjective in {each for group in groups for each in lex.ADJECTIVES[group]}:
            if not _forms(adjective) & _verb_forms():
                for noun in nouns:
                    name = f"{adjective.english} {noun.english}"
                    if zlib.crc32(name.encode()) % corpus.PAIR_SHARE == 0:
                        pairs[name] = adjective, noun
    return tuple(pairs[name] for name in sorted(pairs))


@cache
def _forbidden() -> dict[str, frozenset[str]]:
    """For each form of a noun the forms of adjectives that must not stand in the same document."""
    forbidden: dict[str, set[str]] = {}
    for adjective, noun in held_out_pairs():
        for plural in (False, True):
            for language, form in zip(("en", "fr"), noun.forms(plural), strict=True):
                with_it = {each for each in _forms(adjective) if each.startswith(language)}
                forbidden.setdefault(f"{language} {form}", set()).update(with_it)
    return {noun: frozenset(words) for noun, words in forbidden.items()}


def has_held_out_pair(document: Pair) -> bool:
    """Whether both words of a held-out pair stand anywhere in a document, in either language."""
    words = {f"en {word}" for word in document.english} | {f"fr {word}" for word in document.french}
    forbidden = _forbidden()
    return any(not forbidden[word].isdisjoint(words) for word in words & forbidden.keys())


@cache
def _examples() -> tuple[str, ...]:
    """The example sentences as words between spaces."""
    return tuple(
        f" {text.lower().removesuffix('.').replace(chr(39) + 's', chr(32) + chr(39) + 's')} "
        for text in EXAMPLES
    )


def is_allowed(document: Pair) -> bool:
    """Whether a document may be trained on."""
    text = " ".join(in_full(document.english))
    if corpus.ARTICLES.search(text) or any(example in f" {text} " for example in _examples()):
        return False
    if has_held_out_pair(document):
        return False
    return not any(corpus.is_held_out(one) for one in sentences(in_full(document.english)))


def document(s: Speaker) -> Pair:
    """One sentence, now and then without its stop, or several: two, or as many as there is room for."""
    draw, made = s.generator.random(), pair_of(sentence(s))
    if draw < 0.06:
        return Pair(*(part[:-1] for part in (made.english, made.french, made.sources, made.roles)))  # type: ignore[arg-type]
    if draw < 0.82:
        return made
    while True:
        more = made + pair_of(sentence(s))
        if more.length > LENGTH - 1:
            return made
        made = more
        if draw < 0.96:
            return made


def documents(seed: int = 0, count: int = DOCUMENTS) -> Iterator[Pair]:
    """The training stream: the same for the same seed, finite, free of everything held out."""
    s, made = Speaker(random.Random(seed)), 0
    while made < count:
        one = document(s)
        if one.length < LENGTH and is_allowed(one):
            made += 1
            yield shortened(one) if s.chance(0.25) else one


def digest(stream: Iterable[Pair]) -> str:
    """A checksum of documents in their order."""
    sums = hashlib.sha256()
    for one in stream:
        sums.update(f"{' '.join(one.english)}|{' '.join(one.french)}\n".encode())
    return sums.hexdigest()


def held_out_sentences(seed: int, count: int, pairs: bool = False) -> list[Pair]:
    """Different held-out sentences that hold no held-out pair; with `pairs`, sentences that hold one."""
    s, chosen_pairs = Speaker(random.Random(seed)), dict[tuple[str, ...], Pair]()
    while len(chosen_pairs) < count:
        one = pair_of(sentence(s))
        texts = sentences(one.english)
        chosen = (
            has_held_out_pair(one)
            if pairs
            else not has_held_out_pair(one) and all(map(corpus.is_held_out, texts))
        )
        if chosen and one.length < LENGTH and "[UNK]" not in one.english:
            chosen_pairs[one.english] = one
    return list(chosen_pairs.values())
