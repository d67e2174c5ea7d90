"""Verbs and predicates said in English and French at once, with the places that each French word stands for.

Tenses are called "present" (opens), "progressive" (is opening), "past" (opened) and "was" (was opening).
"""

from __future__ import annotations

from attnscope.demo.train.bilingual import french
from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.french import Agreement
from attnscope.demo.train.bilingual.phrase import NounPhrase, Phrase, Word, join, phrase
from attnscope.demo.train.english.inflection import gerund, past, third
from attnscope.demo.train.english.phrases import PRONOUNS


def be(subject: Agreement, tense: str) -> tuple[str, str]:
    """The forms of "be" and "être": tense is "present" or "past"."""
    if tense == "present":
        english = "am" if subject.first and not subject.plural else "are" if subject.plural else "is"
        return english, french.present("être")[subject.person]
    return "were" if subject.plural else "was", french.imperfect("être")[subject.person]


def is_like(
    subject: Agreement, tense: str, adjective: lex.Adjective, *, degree: str = "", negated: bool = False
) -> Phrase:
    """As in "was not very red", "n'était pas très rouge"."""
    english, french_ = be(subject, tense)
    verb = Phrase(
        (english, "not") if negated else (english,),
        (Word("ne", (1,)), Word(french_, (0,)), Word("pas", (1,))) if negated else (Word(french_, (0,)),),
    )
    more = phrase(degree, {"very": "très", "too": "trop"}[degree]) if degree else Phrase((), ())
    return join(verb, more, phrase(adjective.english, adjective.form(subject), "adjective"))


def english_verb(subject: Agreement, verb: str, tense: str, negated: bool) -> list[str]:
    """The English verb: "was not looking at". Tenses are present, progressive, past and was."""
    nots = ["not"] if negated else []
    if tense in ("progressive", "was"):
        form = be(subject, "present" if tense == "progressive" else "past")[0]
        return [form, *nots, *gerund(verb).split()]
    one = not subject.plural and not subject.first
    if negated:
        return ["did" if tense == "past" else "does" if one else "do", "not", *verb.split()]
    return (past(verb) if tense == "past" else third(verb) if one else verb).split()


def reflexive(subject: Agreement) -> str:
    """The pronoun of "s'ouvrir" before its verb."""
    return ("nous" if subject.plural else "me") if subject.first else "se"


def french_verb(
    subject: Agreement, verb: lex.Verb, tense: str, thing: Agreement | None
) -> tuple[str, str | None]:
    """The finite French verb and its participle, if there is one: "a", "ouvert".

    The present stands for both English presents, the imparfait for "was doing" and for states, the passé
    composé for the simple past; its participle agrees with the subject after "être", and with an object
    pronoun (`thing`) before "avoir".
    """
    if tense in ("present", "progressive"):
        return french.present(verb.french)[subject.person], None
    if tense == "was" or verb.state:
        return french.imperfect(verb.french)[subject.person], None
    being = verb.moves or verb.reflexive
    finite = french.present("être" if being else "avoir")[subject.person]
    return finite, french.participle(verb.french, subject if being else thing)


def verb_phrase(
    subject: Agreement,
    verb: lex.Verb,
    tense: str,
    *,
    negated: bool = False,
    object_: NounPhrase | None = None,
) -> Phrase:
    """A verb with its negation and, if wanted, a pronoun for `object_`: "sold it", "l'a vendue"."""
    english = english_verb(subject, verb.english, tense, negated)
    nots = (english.index("not"),) if negated else ()
    verbs = tuple(place for place in range(len(english)) if place not in nots)
    words = [Word("ne", nots)] if negated else []
    if object_ is not None:
        agreement = object_.agreement
        clitic = "les" if agreement.plural else "la" if agreement.feminine else "le"
        words.append(Word(clitic, (len(english),)))
        english.append(PRONOUNS[object_.pronoun][1])
    if verb.reflexive:
        words.append(Word(reflexive(subject), verbs))
    finite, participle = french_verb(subject, verb, tense, object_.agreement if object_ else None)
    words.append(Word(finite, verbs))
    if negated:
        words.append(Word("pas", nots))
    if participle:
        words.append(Word(participle, verbs))
    return Phrase(tuple(english), tuple(words))
