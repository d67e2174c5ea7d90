"""The English words that the translation model knows, with their French: data only.

Every adjective here stands behind its noun in French; those that stand before it (big, old, new, beautiful)
are left out. A noun is written "english french gender", a verb "english: french" with its marks.
"""

from __future__ import annotations

from dataclasses import dataclass

from attnscope.demo import french, inflection


@dataclass(frozen=True)
class Noun:
    """An English noun and its French. `mass`: no plural and no "a"; `name`: no article either."""

    english: str
    french: str
    feminine: bool
    mass: bool = False
    name: bool = False

    @property
    def countable(self) -> bool:
        return not (self.mass or self.name)

    def forms(self, plural: bool) -> tuple[str, str]:
        """The English and the French form."""
        if not plural:
            return self.english, self.french
        return inflection.plural(self.english), french.plural(self.french)


@dataclass(frozen=True)
class Adjective:
    """An English adjective and the French masculine and feminine; `fixed` ones have one form only."""

    english: str
    masculine: str
    feminine: str
    fixed: bool = False

    def form(self, agreement: french.Agreement) -> str:
        """The French form: "blanches"."""
        form = self.feminine if agreement.feminine else self.masculine
        return french.plural(form) if agreement.plural and not self.fixed else form


@dataclass(frozen=True)
class Verb:
    """An English verb and a French infinitive.

    `reflexive`: "s'ouvrir". `moves`: its past is made with "être". `state`: its simple past is an imparfait,
    and it has no progressive.
    """

    english: str
    french: str
    reflexive: bool = False
    moves: bool = False
    state: bool = False


def _nouns(text: str, mass: bool = False, name: bool = False) -> tuple[Noun, ...]:
    """Nouns out of "door porte f, window fenêtre f"."""
    rows = (item.split() for item in text.split(","))
    return tuple(Noun(english, french_, gender == "f", mass, name) for english, french_, gender in rows)


def _adjectives(text: str) -> tuple[Adjective, ...]:
    """Adjectives out of "red rouge, white blanc blanche, orange orange =" (= has one form only)."""
    found = []
    for item in text.split(","):
        english, masculine, *rest = item.split()
        fixed = rest == ["="]
        feminine = masculine if fixed else rest[0] if rest else french.feminine(masculine)
        found.append(Adjective(english, masculine, feminine, fixed))
    return tuple(found)


def _verbs(text: str) -> dict[str, Verb]:
    """Verbs out of "open: ouvrir, fall: tomber +, want: vouloir =" (+ moves, = state, se reflexive)."""
    found = {}
    for item in text.split(","):
        english, _, words = item.strip().partition(": ")
        marks = words.split()
        name = next(word for word in marks if word not in ("se", "+", "="))
        found[english] = Verb(english, name, "se" in marks, "+" in marks, "=" in marks)
    return found


@dataclass(frozen=True)
class Class:
    """Nouns with what they do, what people do to them and what they are like."""

    name: str
    nouns: tuple[Noun, ...]
    does: tuple[str, ...]
    done: tuple[str, ...]
    like: tuple[str, ...]  # groups of adjectives


def _words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def _class(name: str, nouns: str, does: str, done: str, like: str, mass: bool = False) -> Class:
    """A Class out of plain text; verbs of several words are joined by `_`."""
    verbs = [tuple(item.replace("_", " ") for item in text.split()) for text in (does, done)]
    return Class(name, _nouns(nouns, mass), verbs[0], verbs[1], tuple(like.split()))


ADJECTIVES = {
    name: _adjectives(text)
    for name, text in {
        "colour": "red rouge, blue bleu, green vert, white blanc blanche, black noir, yellow jaune, "
        "brown brun, grey gris, pink rose, purple violet violette, orange orange =",
        "nation": "french français, english anglais, german allemand, italian italien italienne, "
        "spanish espagnol, russian russe, chinese chinois, japanese japonais, american américain, "
        "greek grec grecque",
        "shape": "round rond, square carré, oval ovale",
        "thing": "dirty sale, wet mouillé, hidden caché, lost perdu, stolen volé, forgotten oublié, "
        "heavy lourd, expensive cher chère, modern moderne, strange étrange, magic magique",
        "broken": "broken cassé",
        "container": "open ouvert, closed fermé, empty vide, full plein",
        "person": "tired fatigué, sick malade, happy heureux heureuse, sad triste, furious furieux furieuse, "
        "proud fier fière, rich riche, famous célèbre, intelligent intelligent, brave courageux courageuse, "
        "nervous nerveux nerveuse, lazy paresseux paresseuse, shy timide, strong fort, weak faible, "
        "busy occupé, jealous jaloux jalouse, polite poli, lost perdu",
        "animal": "tired fatigué, sick malade, wild sauvage, dangerous dangereux dangereuse, strong fort, "
        "lost perdu, hidden caché, calm calme, fast rapide, happy heureux heureuse",
        "edible": "delicious délicieux délicieuse, fresh frais fraîche, rotten pourri, cold froid, "
        "hot chaud, sweet sucré, salty salé",
        "liquid": "cold froid, hot chaud, sweet sucré",
        "told": "boring ennuyeux ennuyeuse, interesting intéressant, funny drôle, sad triste, "
        "strange étrange",
        "machine": "fast rapide, slow lent, noisy bruyant, modern moderne, broken cassé, dirty sale, "
        "expensive cher chère",
        "bright": "bright brillant",
        "water": "deep profond, frozen gelé, dangerous dangereux dangereuse, calm calme, cold froid",
        "cloth": "wet mouillé, dry sec sèche, dirty sale, torn déchiré, warm chaud, expensive cher chère",
        "place": "dark sombre, empty vide, noisy bruyant, modern moderne, quiet calme, dangerous dangereux "
        "dangereuse, abandoned abandonné",
        "seat": "comfortable confortable, heavy lourd, broken cassé, dirty sale, modern moderne",
        "use": "useful utile, broken cassé, heavy lourd, dirty sale, modern moderne",
        "loud": "noisy bruyant, broken cassé, modern moderne",
    }.items()
}
MADE = "colour thing nation"

THINGS = (
    _class(
        "opening",
        "door porte f, window fenêtre f, gate portail m, box boîte f, suitcase valise f, drawer tiroir m, "
        "cupboard placard m, bag sac m, envelope enveloppe f, chest coffre m, curtain rideau m, jar bocal m, "
        "closet armoire f, fridge réfrigérateur m, locker casier m, parcel colis m",
        "open close",
        "open close paint",
        f"container {MADE}",
    ),
    _class(
        "ringing",
        "bell cloche f, phone téléphone m, telephone téléphone m, alarm alarme f, doorbell sonnette f",
        "ring",
        "hear repair",
        f"loud {MADE}",
    ),
    _class(
        "shining",
        "lamp lampe f, candle bougie f, lantern lanterne f, torch torche f, light lumière f, star étoile f, "
        "moon lune f",
        "shine",
        "look_at draw",
        "bright colour",
    ),
    _class(
        "vehicle",
        "car voiture f, bus bus m, train train m, truck camion m, taxi taxi m, van camionnette f, "
        "tram tramway m, bicycle vélo m, motorbike moto f",
        "stop brake turn",
        "repair wash wait_for push",
        f"machine {MADE}",
    ),
    _class(
        "boat",
        "boat bateau m, ship navire m, ferry ferry m, canoe canoë m, raft radeau m, yacht yacht m",
        "sink float",
        "repair build",
        f"machine {MADE}",
    ),
    _class(
        "aircraft",
        "plane avion m, helicopter hélicoptère m, rocket fusée f, balloon ballon m",
        "fly land",
        "hear build",
        f"machine {MADE}",
    ),
    _class(
        "machine",
        "engine moteur m, computer ordinateur m, printer imprimante f, radio radio f, heater radiateur m, "
        "television télévision f, pump pompe f, clock horloge f, machine machine f, robot robot m",
        "start hum stop",
        "repair use clean",
        f"machine {MADE}",
    ),
    _class(
        "stream",
        "river rivière f, stream ruisseau m, canal canal m, waterfall cascade f, lake lac m",
        "freeze",
        "cross look_at",
        "water colour",
    ),
    _class(
        "food",
        "apple pomme f, banana banane f, cake gâteau m, cookie biscuit m, pie tarte f, sandwich sandwich m, "
        "pear poire f, egg œuf m, tomato tomate f, carrot carotte f, pancake crêpe f, peach pêche f, "
        "onion oignon m",
        "burn rot",
        "eat cut taste",
        "edible colour nation",
    ),
    _class(
        "meal",
        "bread pain m, cheese fromage m, rice riz m, soup soupe f, meat viande f, butter beurre m, "
        "honey miel m, sugar sucre m, salad salade f",
        "burn",
        "eat taste",
        "edible colour nation",
        mass=True,
    ),
    _class(
        "drink",
        "tea thé m, coffee café m, milk lait m, juice jus m, lemonade limonade f, cocoa cacao m, water eau f",
        "boil",
        "drink spill pour",
        "liquid nation",
        mass=True,
    ),
    _class(
        "plant",
        "tree arbre m, flower fleur f, rose rose f, plant plante f, bush buisson m, tulip tulipe f, "
        "vine vigne f, fern fougère f, lily lys m, oak chêne m",
        "grow bloom",
        "water plant cut",
        "colour nation",
    ),
    _class(
        "clothing",
        "coat manteau m, hat chapeau m, shirt chemise f, dress robe f, jacket veste f, scarf écharpe f, "
        "skirt jupe f, sweater pull m, shoe chaussure f, boot botte f, sock chaussette f",
        "shrink",
        "wear wash",
        f"cloth {MADE}",
    ),
    _class(
        "furniture",
        "table table f, chair chaise f, bed lit m, sofa canapé m, bench banc m, desk bureau m, "
        "shelf étagère f, stool tabouret m",
        "creak",
        "move build paint",
        f"seat shape {MADE}",
    ),
    _class(
        "reading",
        "book livre m, letter lettre f, newspaper journal m, map carte f, magazine magazine m, note note f, "
        "poem poème m, story histoire f",
        "burn",
        "read write",
        "told nation",
    ),
    _class(
        "fragile",
        "glass verre m, cup tasse f, plate assiette f, vase vase m, mirror miroir m, bottle bouteille f, "
        "bowl bol m",
        "break shatter",
        "break wash",
        f"broken shape {MADE}",
    ),
    _class(
        "show",
        "movie film m, film film m, concert concert m, match match m, opera opéra m",
        "begin end",
        "watch",
        "told nation",
    ),
    _class(
        "instrument",
        "piano piano m, guitar guitare f, violin violon m, drum tambour m, flute flûte f, "
        "trumpet trompette f",
        "break",
        "tune hear",
        f"broken {MADE}",
    ),
    _class(
        "tool",
        "hammer marteau m, knife couteau m, spade pelle f, ladder échelle f, rope corde f, broom balai m, "
        "brush brosse f, axe hache f",
        "slip",
        "use borrow hold",
        f"use {MADE}",
    ),
    _class(
        "rolling",
        "ball balle f, wheel roue f, coin pièce f, barrel tonneau m, marble bille f",
        "roll turn",
        "throw push",
        f"shape {MADE}",
    ),
)
ANIMALS = (
    _class("dog", "dog chien m, puppy chiot m, wolf loup m, fox renard m", "bark growl howl", "feed",
           "animal colour"),
    _class("cat", "cat chat m, kitten chaton m", "meow purr", "feed", "animal colour"),
    _class(
        "bird",
        "bird oiseau m, parrot perroquet m, eagle aigle m, pigeon pigeon m, owl hibou m, crow corbeau m, "
        "sparrow moineau m, swan cygne m, goose oie f",
        "sing fly",
        "feed listen_to",
        "animal colour",
    ),
    _class("insect", "bee abeille f, wasp guêpe f, mosquito moustique m, beetle scarabée m", "buzz fly",
           "chase", "animal colour"),
    _class("horse", "horse cheval m, pony poney m, donkey âne m, mule mule f, camel chameau m", "gallop",
           "feed brush", "animal colour"),
    _class("cattle", "cow vache f, goat chèvre f, bull taureau m, lamb agneau m", "graze", "feed sell",
           "animal colour"),
    _class("fish", "shark requin m, whale baleine f, dolphin dauphin m", "swim dive", "feed",
           "animal colour"),
    _class(
        "hopper",
        "frog grenouille f, rabbit lapin m, squirrel écureuil m, kangaroo kangourou m, mouse souris f",
        "jump hide",
        "chase",
        "animal colour",
    ),
    _class("beast", "lion lion m, bear ours m, tiger tigre m, elephant éléphant m, dragon dragon m",
           "roar attack", "hunt chase", "animal colour"),
)  # fmt: skip
HE = _nouns(
    "man homme m, boy garçon m, king roi m, father père m, brother frère m, uncle oncle m, son fils m, "
    "husband mari m, prince prince m, waiter serveur m, nephew neveu m, policeman policier m, "
    "fisherman pêcheur m, monk moine m, teacher professeur m, doctor médecin m, farmer fermier m, "
    "baker boulanger m, driver chauffeur m, artist artiste m, student étudiant m, friend ami m, "
    "pilot pilote m, singer chanteur m, writer écrivain m, lawyer avocat m, judge juge m, "
    "soldier soldat m, sailor marin m, painter peintre m, dancer danseur m, "
    "worker ouvrier m, captain capitaine m, child enfant m, engineer ingénieur m, dentist dentiste m, "
    "gardener jardinier m, butcher boucher m, mechanic mécanicien m"
)
SHE = _nouns(
    "woman femme f, girl fille f, queen reine f, mother mère f, sister sœur f, aunt tante f, "
    "daughter fille f, wife femme f, princess princesse f, waitress serveuse f, "
    "lady dame f, niece nièce f, actress actrice f, person personne f, witch sorcière f, "
    "nun religieuse f, nurse infirmière f"
)
HE_NAMES = _nouns(
    "bill bill m, tom tom m, john john m, peter peter m, paul paul m, david david m, jack jack m, max max m",
    name=True,
)
SHE_NAMES = _nouns(
    "mary mary f, anna anna f, susan susan f, emma emma f, kate kate f, lucy lucy f, alice alice f, "
    "jane jane f, sarah sarah f, julia julia f, ruth ruth f",
    name=True,
)
# What the tokenizer does not know is not translated.
UNKNOWN = Noun("[UNK]", "[UNK]", feminine=False, name=True)
UNKNOWN_ADJECTIVE = Adjective("[UNK]", "[UNK]", "[UNK]", fixed=True)

PUBLIC = _nouns(
    "supermarket supermarché m, market marché m, museum musée m, theatre théâtre m, cinema cinéma m, "
    "station gare f, airport aéroport m, school école f, stadium stade m, farm ferme f, hospital hôpital m, "
    "port port m, hotel hôtel m, restaurant restaurant m, bakery boulangerie f, church église f, "
    "park parc m, bank banque f, pharmacy pharmacie f, library bibliothèque f"
)  # where one goes to and is at
INSIDE = _nouns(
    "garden jardin m, kitchen cuisine f, house maison f, street rue f, bedroom chambre f, castle château m, "
    "field champ m, forest forêt f, city ville f, village village m, shop magasin m, office bureau m, "
    "garage garage m, factory usine f, yard cour f, hall couloir m, bookshop librairie f"
)
SURFACES = _nouns(
    "beach plage f, hill colline f, roof toit m, road route f, bridge pont m, mountain montagne f, "
    "table table f, chair chaise f, bed lit m, bench banc m, wall mur m"
)

VERBS = _verbs(
    "open: ouvrir, close: fermer, ring: sonner, shine: briller, brake: freiner, turn: tourner, sink: couler, "
    "float: flotter, fly: voler, land: atterrir, start: démarrer, hum: bourdonner, freeze: geler, "
    "burn: brûler, rot: pourrir, boil: bouillir, grow: pousser, bloom: fleurir, shrink: rétrécir, "
    "creak: grincer, begin: commencer, slip: glisser, roll: rouler, bark: aboyer, growl: grogner, "
    "howl: hurler, meow: miauler, purr: ronronner, sing: chanter, buzz: bourdonner, gallop: galoper, "
    "graze: brouter, swim: nager, dive: plonger, jump: sauter, roar: rugir, attack: attaquer, laugh: rire, "
    "smile: sourire, cry: pleurer, shout: crier, sleep: dormir, dance: danser, walk: marcher, run: courir, "
    "work: travailler, play: jouer, wait: attendre, fall: tomber +, arrive: arriver +, leave: partir +, "
    "go: aller +, sneeze: éternuer, cough: tousser, yawn: bâiller, snore: ronfler, pray: prier, "
    "whisper: chuchoter, paint: peindre, hear: entendre, repair: réparer, look at: regarder, "
    "watch: regarder, look for: chercher, wait for: attendre, listen to: écouter, draw: dessiner, "
    "wash: laver, push: pousser, build: construire, use: utiliser, clean: nettoyer, cross: traverser, "
    "eat: manger, cut: couper, taste: goûter, drink: boire, spill: renverser, pour: verser, water: arroser, "
    "plant: planter, wear: porter, carry: porter, move: déplacer, read: lire, write: écrire, tune: accorder, "
    "borrow: emprunter, hold: tenir, throw: lancer, feed: nourrir, chase: poursuivre, brush: brosser, "
    "sell: vendre, hunt: chasser, see: voir, find: trouver, buy: acheter, lose: perdre, steal: voler, "
    "take: prendre, give: donner, show: montrer, help: aider, follow: suivre, invite: inviter, "
    "thank: remercier, greet: saluer, call: appeler, meet: rencontrer, love: aimer =, hate: détester =, "
    "know: connaître =, want: vouloir =, have: avoir ="
)
# The same English verbs without an object, where French needs a reflexive one.
REFLEXIVE = _verbs(
    "open: se ouvrir, close: se fermer, stop: se arrêter, break: se casser, shatter: se briser, "
    "end: se terminer, hide: se cacher, wake up: se réveiller, sit down: se asseoir, stand up: se lever, "
    "faint: se évanouir"
)
WITH_OBJECT = {"break": Verb("break", "casser"), "hide": Verb("hide", "cacher")}

PERSON_DOES = (
    *_words("laugh smile cry shout sleep dance sing walk run work play wait swim fall arrive leave sneeze"),
    *_words("cough yawn snore pray whisper faint"),
    *("wake up", "sit down", "stand up"),
)
ANIMAL_DOES = ("sleep", "run", "jump", "hide", "fall", "arrive")
TO_THING = ("see", "find", "buy", "sell", "lose", "look for", "want", "have", "take", "steal", "love", "hate",
            "hide", "draw", "carry")  # fmt: skip
TO_SOMEBODY = ("see", "watch", "look at", "hear", "help", "follow", "invite", "thank", "greet", "call",
               "love", "hate", "know", "wait for", "look for", "meet", "draw", "listen to",
               "find")  # fmt: skip
TO_ANIMAL = ("see", "watch", "look at", "hear", "find", "follow", "look for", "love", "draw", "buy", "have")
BY_ANIMAL = ("see", "hear", "follow", "chase", "watch", "find", "attack")
PREPOSITIONS = {"behind": "derrière", "in front of": "devant", "near": "près de", "next to": "à côté de"}
KIN = frozenset(
    _words("father mother brother sister uncle aunt son daughter husband wife friend niece nephew")
)
ONLY_ONE = frozenset(_words("father mother husband wife"))
UNGRADED = frozenset(
    _words("lost hidden stolen forgotten broken torn open closed empty full magic abandoned frozen rotten")
)  # nothing is "very stolen"
AT_ONCE = frozenset(_words("see hear find lose meet"))  # never in the progressive
NUMBERS = dict(
    zip(
        _words("two three four five six seven eight nine ten"),
        _words("deux trois quatre cinq six sept huit neuf dix"),
        strict=True,
    )
)
MANNERS = {"slowly": "lentement", "quickly": "rapidement", "suddenly": "soudainement", "quietly": "doucement"}
TIMES = {
    "past": {"yesterday": "hier", "this morning": "ce matin"},
    "present": {"every day": "tous les jours", "in winter": "en hiver"},
    "progressive": {"now": "maintenant"},
}
