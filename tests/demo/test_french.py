"""French forms and sentences, every one worked out by hand; and which word stands for which."""

import pytest

from attnscope.demo.train.bilingual import french
from attnscope.demo.train.bilingual import lexicon as lex
from attnscope.demo.train.bilingual.french import Agreement
from attnscope.demo.train.bilingual.phrase import (
    NounPhrase,
    Phrase,
    again,
    join,
    noun_phrase,
    of,
    owned,
    phrase,
    pronoun,
    without,
)
from attnscope.demo.train.bilingual.verbs import is_like, verb_phrase
from attnscope.demo.train.corpora.translation import Pair, pair_of, written
from attnscope.demo.train.english import inflection, lexicon

NOUNS = {noun.english: noun for kind in lex.THINGS + lex.ANIMALS for noun in kind.nouns} | {
    noun.english: noun
    for nouns in (lex.PUBLIC, lex.INSIDE, lex.SURFACES, lex.HE, lex.SHE, lex.HE_NAMES, lex.SHE_NAMES)
    for noun in nouns
}
ADJECTIVES = {each.english: each for group in lex.ADJECTIVES.values() for each in group}
PEOPLE = {noun.english: "he" for noun in lex.HE + lex.HE_NAMES} | {
    noun.english: "she" for noun in lex.SHE + lex.SHE_NAMES
}


def named(text: str, *, plural: bool = False, both: bool = False) -> NounPhrase:
    """A noun phrase out of its lemmas: "the red italian door"."""
    article, *adjectives, noun = text.split() if " " in text else ("", text)
    chosen = [ADJECTIVES[word] for word in adjectives]
    stands = PEOPLE.get(noun, "it")
    return noun_phrase(article, NOUNS[noun], chosen, plural=plural, both=both, pronoun=stands)


def does(
    who: NounPhrase, verb: str, tense: str, what: NounPhrase | None = None, *, reflexive: bool = False, **more
) -> Phrase:
    """A clause with a subject, a verb and perhaps an object."""
    chosen = lex.REFLEXIVE[verb] if reflexive else lex.WITH_OBJECT.get(verb) or lex.VERBS[verb]
    said = join(who.said, verb_phrase(who.agreement, chosen, tense, **more))
    return join(said, what.said) if what else said


def is_(who: NounPhrase, adjective: str, tense: str = "present", **more) -> Phrase:
    return join(who.said, is_like(who.agreement, tense, ADJECTIVES[adjective], **more))


ME, WE, SHE, THEY = (pronoun(word) for word in ("i", "we", "she", "they"))
DOOR, BOOKS = named("the red door"), named("the red book", plural=True)
WHEN, IN, AND = phrase("when", "quand"), phrase("in", "dans"), phrase("and", "et")
NEAR, AT, BECAUSE = phrase("near", "près de"), phrase("at", "à"), phrase("because", "parce que")

SENTENCES = [
    # gender and the article
    (named("the door").said, "the door", "la porte"),
    (named("a man").said, "a man", "un homme"),
    (named("a apple").said, "an apple", "une pomme"),
    (named("a italian lamp").said, "an italian lamp", "une lampe italienne"),
    (named("a useful broom").said, "a useful broom", "un balai utile"),
    # elision, and none before an aspirated h or a y
    (named("the man").said, "the man", "l'homme"),
    (named("the star").said, "the star", "l'étoile"),
    (named("the egg").said, "the egg", "l'œuf"),
    (named("the owl").said, "the owl", "le hibou"),
    (named("the axe").said, "the axe", "la hache"),
    (named("the yacht").said, "the yacht", "le yacht"),
    # plurals
    (named("the owl", plural=True).said, "the owls", "les hiboux"),
    (named("the newspaper", plural=True).said, "the newspapers", "les journaux"),
    (named("the bus", plural=True).said, "the buses", "les bus"),
    (named("the mouse", plural=True).said, "the mice", "les souris"),
    (named("a white boat", plural=True).said, "some white boats", "des bateaux blancs"),
    (named("three white shirt", plural=True).said, "three white shirts", "trois chemises blanches"),
    # agreement and place of adjectives
    (named("the green tree").said, "the green tree", "l'arbre vert"),
    (named("the dry skirt", plural=True).said, "the dry skirts", "les jupes sèches"),
    (named("a greek vase").said, "a greek vase", "un vase grec"),
    (named("a red italian car").said, "a red italian car", "une voiture italienne rouge"),
    (named("the red black flower", both=True).said, "the red and black flower", "la fleur rouge et noire"),
    (named("a orange sock", plural=True).said, "some orange socks",
     "des chaussettes orange"),
    (named("the happy queen", plural=True).said, "the happy queens", "les reines heureuses"),
    # possessives, demonstratives, partitives
    (named("my star").said, "my star", "mon étoile"),
    (named("my lamp").said, "my lamp", "ma lampe"),
    (named("her son").said, "her son", "son fils"),
    (named("their dog", plural=True).said, "their dogs", "leurs chiens"),
    (named("this man").said, "this man", "cet homme"),
    (named("this lamp").said, "this lamp", "cette lampe"),
    (named("this bed", plural=True).said, "these beds", "ces lits"),
    (named("a bread").said, "some bread", "du pain"),
    (named("a water").said, "some water", "de l'eau"),
    (named("a soup").said, "some soup", "de la soupe"),
    # possession and contracted prepositions
    (of(named("the red door"), named("the house")).said, "the red door of the house",
     "la porte rouge de la maison"),
    (owned(named("the king"), named("door")).said, "the king's door",
     "la porte du roi"),
    (owned(named("mary"), noun_phrase("", NOUNS["dog"], [ADJECTIVES["lost"]], plural=True)).said,
     "mary's lost dogs", "les chiens perdus de mary"),
    (owned(named("anna"), noun_phrase("", NOUNS["egg"])).said, "anna's egg", "l'œuf d'anna"),
    (join(NEAR, named("the bridge").said), "near the bridge", "près du pont"),
    (join(NEAR, named("the tree").said), "near the tree", "près de l'arbre"),
    (join(NEAR, named("the house", plural=True).said), "near the houses", "près des maisons"),
    (join(AT, named("the market").said), "at the market", "au marché"),
    (join(AT, named("the school").said), "at the school", "à l'école"),
    # tenses and persons
    (does(ME, "watch", "was", DOOR), "i was watching the red door", "je regardais la porte rouge"),
    (does(ME, "love", "present", named("the queen")), "i love the queen", "j'aime la reine"),
    (does(WE, "eat", "progressive", named("a apple")), "we are eating an apple", "nous mangeons une pomme"),
    (does(WE, "eat", "was", named("a apple")), "we were eating an apple", "nous mangions une pomme"),
    (does(THEY, "buy", "present", BOOKS), "they buy the red books", "ils achètent les livres rouges"),
    (does(SHE, "have", "past", named("a car")), "she had a car", "elle avait une voiture"),
    (does(named("the dog"), "bark", "progressive"), "the dog is barking", "le chien aboie"),
    (does(SHE, "fall", "past"), "she fell", "elle est tombée"),
    (does(WE, "leave", "past"), "we left", "nous sommes partis"),
    (does(ME, "wake up", "past", reflexive=True), "i woke up", "je me suis réveillé"),
    (does(DOOR, "open", "past", reflexive=True), "the red door opened", "la porte rouge s'est ouverte"),
    (does(named("the glass", plural=True), "break", "past", reflexive=True), "the glasses broke",
     "les verres se sont cassés"),
    # negation
    (does(SHE, "sleep", "present", negated=True), "she does not sleep", "elle ne dort pas"),
    (does(ME, "open", "past", DOOR, negated=True), "i did not open the red door",
     "je n'ai pas ouvert la porte rouge"),
    (does(named("the window"), "close", "past", reflexive=True, negated=True), "the window did not close",
     "la fenêtre ne s'est pas fermée"),
    (is_(named("the lamp"), "white", "past", negated=True), "the lamp was not white",
     "la lampe n'était pas blanche"),
    (does(named("the man"), "have", "present", without(named("a white car")), negated=True),
     "the man does not have a white car", "l'homme n'a pas de voiture blanche"),
    (does(ME, "drink", "past", without(named("a cold water")), negated=True),
     "i did not drink any cold water", "je n'ai pas bu d'eau froide"),
    # pronouns take the gender of what they stand for, as subjects and as objects
    (join(does(ME, "watch", "was", DOOR), WHEN, does(again(DOOR), "open", "past", reflexive=True)),
     "i was watching the red door when it opened", "je regardais la porte rouge quand elle s'est ouverte"),
    (join(does(ME, "see", "past", named("the dog")), WHEN, does(again(named("the dog")), "bark", "past")),
     "i saw the dog when it barked", "j'ai vu le chien quand il a aboyé"),
    (join(does(named("the nurse"), "look for", "was", named("the lost mule", plural=True)), BECAUSE,
          is_(again(named("the lost mule", plural=True)), "tired", "past")),
     "the nurse was looking for the lost mules because they were tired",
     "l'infirmière cherchait les mules perdues parce qu'elles étaient fatiguées"),
    (join(does(named("the woman"), "buy", "past", named("a broken clock")), AND,
          verb_phrase(Agreement(True), lex.VERBS["repair"], "past", object_=named("the clock"))),
     "the woman bought a broken clock and repaired it",
     "la femme a acheté une horloge cassée et l'a réparée"),
    (does(SHE, "find", "past", object_=BOOKS), "she found them", "elle les a trouvés"),
    (does(SHE, "know", "present", object_=named("mary"), negated=True), "she does not know her",
     "elle ne la connaît pas"),
    (join(does(named("the black cat"), "sleep", "progressive"), IN, named("the green garden").said),
     "the black cat is sleeping in the green garden", "le chat noir dort dans le jardin vert"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "english", "french_"), SENTENCES, ids=[row[1] for row in SENTENCES])
def test_the_sentence_is_the_one_worked_out_by_hand(said: Phrase, english: str, french_: str) -> None:
    pair = pair_of(said)
    assert (written(pair.english), written(pair.french)) == (english, french_)


def aligned(said: Phrase) -> list[tuple[str, str]]:
    """Every French word with the English words that it stands for."""
    pair: Pair = pair_of(said)
    return [
        (word, " ".join(pair.english[place] for place in places))
        for word, places in zip(pair.french, pair.sources, strict=True)
    ]


def test_french_words_know_their_english_ones_across_a_change_of_order() -> None:
    assert aligned(named("a red italian car").said) == [
        ("une", "a"), ("voiture", "car"), ("italienne", "italian"), ("rouge", "red"),
    ]  # fmt: skip


def test_a_contracted_article_stands_for_both_words() -> None:
    assert aligned(join(NEAR, named("the red bridge").said)) == [
        ("près", "near"), ("du", "near the"), ("pont", "bridge"), ("rouge", "red"),
    ]  # fmt: skip


def test_the_words_of_a_negated_reflexive_verb_stand_for_not_and_for_the_verb() -> None:
    assert aligned(does(DOOR, "open", "past", reflexive=True, negated=True))[3:] == [
        ("ne", "not"), ("s'", "did open"), ("est", "did open"), ("pas", "not"), ("ouverte", "did open"),
    ]  # fmt: skip


def test_an_object_pronoun_moves_before_the_verb() -> None:
    assert aligned(does(SHE, "sell", "past", object_=BOOKS, negated=True)) == [
        ("elle", "she"), ("ne", "not"), ("les", "them"), ("a", "did sell"), ("pas", "not"),
        ("vendus", "did sell"),
    ]  # fmt: skip


def test_owner_and_owned_change_places() -> None:
    assert aligned(owned(named("the king"), named("door")).said) == [
        ("la", "'s"), ("porte", "door"), ("du", "the 's"), ("roi", "king"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("infinitive", "presents", "imperfects", "participle"),
    [
        ("manger", "mange mange mangeons mangent", "mangeais mangeait mangions mangeaient", "mangé"),
        ("lancer", "lance lance lançons lancent", "lançais lançait lancions lançaient", "lancé"),
        ("nourrir", "nourris nourrit nourrissons nourrissent",
         "nourrissais nourrissait nourrissions nourrissaient", "nourri"),
        ("nettoyer", "nettoie nettoie nettoyons nettoient",
         "nettoyais nettoyait nettoyions nettoyaient", "nettoyé"),
        ("être", "suis est sommes sont", "étais était étions étaient", "été"),
        ("voir", "vois voit voyons voient", "voyais voyait voyions voyaient", "vu"),
    ],
)  # fmt: skip
def test_verbs_are_conjugated(infinitive: str, presents: str, imperfects: str, participle: str) -> None:
    assert " ".join(french.present(infinitive)) == presents
    assert " ".join(french.imperfect(infinitive)) == imperfects
    assert french.participle(infinitive) == participle


def test_every_verb_that_does_not_follow_a_rule_is_in_the_table() -> None:
    verbs = {verb.french for verb in (*lex.VERBS.values(), *lex.REFLEXIVE.values())}
    second_group = {"atterrir", "pourrir", "fleurir", "rétrécir", "rugir", "évanouir", "nourrir"}
    ruled = {verb for verb in verbs if verb.endswith("er")} | second_group
    assert verbs - ruled <= french.IRREGULAR.keys()


def test_every_doing_has_a_french_verb() -> None:
    kinds = lex.THINGS + lex.ANIMALS
    alone = {verb for kind in kinds for verb in kind.does} | {*lex.PERSON_DOES, *lex.ANIMAL_DOES}
    with_object = {verb for kind in kinds for verb in kind.done}
    with_object |= {*lex.TO_THING, *lex.TO_SOMEBODY, *lex.TO_ANIMAL, *lex.BY_ANIMAL}
    assert alone <= lex.VERBS.keys() | lex.REFLEXIVE.keys()
    assert with_object <= lex.VERBS.keys() | lex.WITH_OBJECT.keys()


def test_the_nouns_are_those_of_the_lexicon() -> None:
    known = {noun for kind in lexicon.THINGS + lexicon.ANIMALS for noun in kind.nouns}
    assert {noun.english for kind in lex.THINGS + lex.ANIMALS for noun in kind.nouns} <= known
    people = {*lexicon.HE, *lexicon.SHE, *lexicon.EITHER}
    assert {noun.english for noun in lex.HE + lex.SHE} <= people


def test_no_noun_has_two_genders() -> None:
    genders: dict[str, set[bool]] = {}
    for noun in NOUNS.values():
        genders.setdefault(noun.french, set()).add(noun.feminine)
    assert all(len(each) == 1 for each in genders.values())


def test_an_adjective_has_one_french_everywhere() -> None:
    forms = {each.english: each for group in lex.ADJECTIVES.values() for each in group}
    assert all(forms[each.english] == each for group in lex.ADJECTIVES.values() for each in group)


def test_english_plurals_differ_from_their_singulars() -> None:
    assert all(inflection.plural(noun.english) != noun.english for noun in NOUNS.values() if noun.countable)
