"""French word forms: plurals, feminine adjectives, verbs in three tenses, small words before a vowel.

Only what the translation model's language needs, and right for that: no subjunctive, no "tu", no "vous".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

ASPIRATED = ("hibou", "hach", "hurl", "huit")  # beginnings before which nothing is elided
ELIDED = {
    "le": "l'", "la": "l'", "je": "j'", "me": "m'", "se": "s'", "ne": "n'", "de": "d'", "que": "qu'",
}  # fmt: skip
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
PLURALS = {"hibou": "hiboux"}
BEFORE_SILENT = {
    "acheter": "achèt", "aboyer": "aboi", "appeler": "appell", "geler": "gèl", "lever": "lèv",
    "nettoyer": "nettoi", "essuyer": "essui",
}  # fmt: skip

# Infinitive: the present of je, il, nous and ils, then the participle.
IRREGULAR = {
    name: tuple(forms.split())
    for name, forms in {
        "aller": "vais va allons vont allé",
        "asseoir": "assieds assied asseyons asseyent assis",
        "attendre": "attends attend attendons attendent attendu",
        "avoir": "ai a avons ont eu",
        "boire": "bois boit buvons boivent bu",
        "bouillir": "bous bout bouillons bouillent bouilli",
        "connaître": "connais connaît connaissons connaissent connu",
        "construire": "construis construit construisons construisent construit",
        "courir": "cours court courons courent couru",
        "dormir": "dors dort dormons dorment dormi",
        "écrire": "écris écrit écrivons écrivent écrit",
        "entendre": "entends entend entendons entendent entendu",
        "être": "suis est sommes sont été",
        "lire": "lis lit lisons lisent lu",
        "ouvrir": "ouvre ouvre ouvrons ouvrent ouvert",
        "partir": "pars part partons partent parti",
        "peindre": "peins peint peignons peignent peint",
        "perdre": "perds perd perdons perdent perdu",
        "poursuivre": "poursuis poursuit poursuivons poursuivent poursuivi",
        "prendre": "prends prend prenons prennent pris",
        "rire": "ris rit rions rient ri",
        "sourire": "souris sourit sourions sourient souri",
        "suivre": "suis suit suivons suivent suivi",
        "tenir": "tiens tient tenons tiennent tenu",
        "vendre": "vends vend vendons vendent vendu",
        "voir": "vois voit voyons voient vu",
        "vouloir": "veux veut voulons veulent voulu",
    }.items()
}


@dataclass(frozen=True)
class Agreement:
    """What a French word must agree with. Whoever says "je" or "nous" is masculine here."""

    feminine: bool = False
    plural: bool = False
    first: bool = False  # je, nous

    @property
    def person(self) -> int:
        """The place of its verb form among those of je, il, nous, ils."""
        return (0 if self.first else 1) + 2 * self.plural


def elides(word: str) -> bool:
    """Whether a small word before this one loses its vowel: "homme" yes, "hibou" and "yacht" no."""
    if word == "y" or word[0] in "aeiouâàéèêëîïôœù":
        return True
    return word[0] == "h" and not word.startswith(ASPIRATED)


@cache
def plural(word: str) -> str:
    """The plural of a noun or a masculine adjective: "journal" gives "journaux"."""
    if word in PLURALS:
        return PLURALS[word]
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith(("eau", "eu")) and word != "bleu" else "s")


@cache
def feminine(word: str) -> str:
    """The regular feminine: "fermé" gives "fermée", "rouge" stays."""
    return word if word.endswith("e") else word + "e"


def participle(infinitive: str, agreement: Agreement | None = None) -> str:
    """The past participle, agreeing where there is something to agree with: "ouvertes"."""
    form = IRREGULAR[infinitive][4] if infinitive in IRREGULAR else infinitive[:-2] + (
        "é" if infinitive.endswith("er") else "i"
    )  # fmt: skip
    if agreement is None:
        return form
    form = feminine(form) if agreement.feminine else form
    return plural(form) if agreement.plural else form


@cache
def present(infinitive: str) -> tuple[str, ...]:
    """The present of je, il, nous and ils."""
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive][:4]
    stem = infinitive[:-2]
    if infinitive.endswith("ir"):
        return stem + "is", stem + "it", stem + "issons", stem + "issent"
    silent = BEFORE_SILENT.get(infinitive, stem)
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    return silent + "e", silent + "e", soft + "ons", silent + "ent"


@cache
def imperfect(infinitive: str) -> tuple[str, ...]:
    """The imparfait of je, il, nous and ils: the stem of "nous" in the present, except for "être"."""
    stem = "ét" if infinitive == "être" else present(infinitive)[2].removesuffix("ons")
    hard = stem[:-1] if stem.endswith("ge") else stem[:-1] + "c" if stem.endswith("ç") else stem
    return stem + "ais", stem + "ait", hard + "ions", stem + "aient"
