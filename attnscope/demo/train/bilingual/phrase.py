"""Phrases that are said in English and French at once, so that it is known which word stands for which.

A `Phrase` holds English words and French words, and every French word the places of the English words that
it stands for. Phrases are put side by side in both languages (`join`); where the order differs, the function
that builds the phrase says so: adjectives follow their noun, "the king 's door" becomes "la porte du roi".
`spell` does last what French does to neighbours: "de le" becomes "du", "le homme" becomes "l' homme".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnscope.demo.train.bilingual import french
from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.french import Agreement

MASCULINE = Agreement()
SUBJECTS = {(False, False): "il", (True, False): "elle", (False, True): "ils", (True, True): "elles"}
POSSESSIVES = {
    "my": "mon ma mes", "our": "notre notre nos", "his": "son sa ses", "her": "son sa ses",
    "their": "leur leur leurs",
}  # fmt: skip


@dataclass(frozen=True)
class Word:
    """A French word, the places of the English words it stands for, and its role: "noun" or "adjective"."""

    text: str
    sources: tuple[int, ...]
    role: str = ""


@dataclass(frozen=True)
class Phrase:
    """The same words twice."""

    english: tuple[str, ...]
    french: tuple[Word, ...]


def phrase(english: str, french_: str, role: str = "") -> Phrase:
    """Words that stand for each other as a whole: "in front of", "devant"."""
    words = tuple(english.split())
    everything = tuple(range(len(words)))
    return Phrase(words, tuple(Word(word, everything, role) for word in french_.split()))


def shifted(words: Sequence[Word], by: int) -> tuple[Word, ...]:
    """French words whose English ones stand `by` places further on."""
    return tuple(replace(word, sources=tuple(place + by for place in word.sources)) for word in words)


def join(*parts: Phrase, order: Sequence[int] | None = None) -> Phrase:
    """Phrases side by side; `order` gives the French order of the parts where it is another one."""
    starts = [sum(len(part.english) for part in parts[:i]) for i in range(len(parts))]
    moved = [shifted(part.french, start) for part, start in zip(parts, starts, strict=True)]
    english = tuple(word for part in parts for word in part.english)
    return Phrase(english, tuple(word for i in order or range(len(parts)) for word in moved[i]))


@dataclass(frozen=True)
class NounPhrase:
    """A noun phrase, how others agree with it, its pronoun, and whether it begins with "a" or "some"."""

    said: Phrase
    agreement: Agreement
    pronoun: str
    indefinite: bool = False


def spell(words: Sequence[Word]) -> tuple[Word, ...]:
    """French as it is written: contracted articles, elided vowels."""
    contracted: list[Word] = []
    for i, word in enumerate(words):
        before = contracted[-1].text if contracted else ""
        vowel = i + 1 < len(words) and french.elides(words[i + 1].text)
        if (before, word.text) in french.CONTRACTED and not (word.text == "le" and vowel):
            sources = tuple(sorted({*contracted[-1].sources, *word.sources}))
            contracted[-1] = Word(french.CONTRACTED[before, word.text], sources)
        else:
            contracted.append(word)
    after = [word.text for word in contracted[1:]] + ["."]
    return tuple(
        replace(word, text=french.ELIDED[word.text])
        if word.text in french.ELIDED and french.elides(following)
        else word
        for word, following in zip(contracted, after, strict=True)
    )


def determiner(english: str, first: str, french_first: str, agreement: Agreement, mass: bool) -> Phrase:
    """The article, possessive, demonstrative or number before an English and a French word."""
    one = agreement.plural, agreement.feminine and not french.elides(french_first)
    if english in POSSESSIVES:
        his, her, theirs = POSSESSIVES[english].split()
        return phrase(english, theirs if agreement.plural else her if one[1] else his)
    if english == "this":
        this = "cette" if agreement.feminine else "cet" if french.elides(french_first) else "ce"
        return phrase("these" if agreement.plural else "this", "ces" if agreement.plural else this)
    if english in lex.NUMBERS:
        return phrase(english, lex.NUMBERS[english])
    definite = "les" if agreement.plural else "la" if agreement.feminine else "le"
    if english == "the":
        return phrase("the", definite)
    if english in ("any", "no"):
        return phrase(english, "de")
    if agreement.plural:
        return phrase("some", "des")
    if mass:
        return phrase("some", f"de {definite}")
    vowel = first[0] in "aeiou" and first != "useful"
    return phrase("an" if vowel else "a", "une" if agreement.feminine else "un")


def noun_phrase(
    article: str,
    noun: lex.Noun,
    adjectives: Sequence[lex.Adjective] = (),
    *,
    plural: bool = False,
    both: bool = False,
    pronoun: str = "it",
) -> NounPhrase:
    """As in "the red Italian door", "la porte italienne rouge"; `both` joins two adjectives by "and".

    `article` is one of the, a (some where there is no singular), any, no, my, our, his, her, their, this,
    a number, or nothing before a name. `pronoun` is that of the singular.
    """
    agreement = Agreement(noun.feminine, plural)
    english, french_ = noun.forms(plural)
    core = with_adjectives(phrase(english, french_, "noun"), adjectives, agreement, both)
    if article:
        core = join(determiner(article, core.english[0], french_, agreement, noun.mass), core)
    return NounPhrase(core, agreement, "they" if plural else pronoun, article == "a")


def with_adjectives(
    noun: Phrase, adjectives: Sequence[lex.Adjective], agreement: Agreement, both: bool
) -> Phrase:
    """A noun with adjectives: before it in English, behind it in French, the nearest first."""
    said = [phrase(each.english, each.form(agreement), "adjective") for each in adjectives]
    if both and len(said) > 1:
        said = [join(said[0], phrase("and", "et"), *said[1:])]
    return join(*said, noun, order=[len(said), *reversed(range(len(said)))])


def pronoun(english: str, agreement: Agreement = MASCULINE) -> NounPhrase:
    """A subject pronoun; "it", "they" and their French agree with what they stand for."""
    if english in ("i", "we"):
        agreement = Agreement(False, english == "we", first=True)
        return NounPhrase(phrase(english, "nous" if english == "we" else "je"), agreement, english)
    agreement = replace(agreement, feminine=True) if english == "she" else agreement
    agreement = replace(agreement, plural=english == "they")
    return NounPhrase(phrase(english, SUBJECTS[agreement.feminine, agreement.plural]), agreement, english)


def again(who: NounPhrase) -> NounPhrase:
    """The pronoun for what a noun phrase names."""
    return pronoun(who.pronoun, who.agreement)


def of(thing: NounPhrase, owner: NounPhrase, preposition: str = "of", french_: str = "de") -> NounPhrase:
    """As in "the door of the house", "la porte de la maison"."""
    return replace(thing, said=join(thing.said, phrase(preposition, french_), owner.said))


def owned(owner: NounPhrase, thing: NounPhrase) -> NounPhrase:
    """As in "the king 's red door", "la porte rouge du roi": `thing` is said without its article.

    The article and "de" both stand for the "'s".
    """
    mark = len(owner.said.english)
    definite = "les" if thing.agreement.plural else "la" if thing.agreement.feminine else "le"
    words = (
        Word(definite, (mark,)),
        *shifted(thing.said.french, mark + 1),
        Word("de", (mark,)),
        *owner.said.french,
    )
    return replace(thing, said=Phrase((*owner.said.english, "'s", *thing.said.english), words))


def without(thing: NounPhrase) -> NounPhrase:
    """An indefinite noun phrase behind "ne ... pas": "une porte" becomes "de porte", "some" becomes "any"."""
    if not thing.indefinite:
        return thing
    first, *rest = thing.said.english
    kept = (word for word in thing.said.french if word.sources != (0,))
    english = ("any" if first == "some" else first, *rest)
    return replace(thing, said=Phrase(english, (Word("de", (0,)), *kept)), indefinite=False)
