"""The words of the artificial language: data only. Which things open, ring, fly, bark, flow or are eaten.

Every list is plain text so that it can be read and added to. `grammar` and `stories` make sentences of it;
nothing here knows about models or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One class of nouns with its selectional preferences: what its members do, undergo and are like."""

    name: str
    nouns: tuple[str, ...]
    does: tuple[str, ...]  # intransitive: "the door opened"
    done: tuple[str, ...]  # transitive, with the noun as the object: "she locked the door"
    like: tuple[str, ...]  # predicates: "the door was locked"
    mass: bool = False  # no plural and no "a": "bread", "water"


def _kind(name: str, nouns: str, does: str, done: str, like: str, mass: bool = False) -> Kind:
    """A Kind out of plain text; words of one item are joined by `_` ("take_off")."""
    split = [tuple(item.replace("_", " ") for item in text.split()) for text in (nouns, does, done, like)]
    return Kind(name, split[0], split[1], split[2], split[3], mass)


def _words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text, between commas."""
    return tuple(text.split(","))


THINGS: tuple[Kind, ...] = (
    _kind(
        "opening",
        "door window gate box suitcase drawer cupboard lid bag envelope chest curtain safe jar cabinet "
        "closet fridge locker parcel purse",
        "open close shut",
        "open close lock unlock",
        "open closed locked empty",
    ),
    _kind(
        "ringing",
        "bell phone telephone alarm doorbell",
        "ring buzz",
        "answer ring hear",
        "loud silent noisy",
    ),
    _kind(
        "shining",
        "lamp candle lantern torch light star moon",
        "shine flicker glow",
        "light cover",
        "bright dim",
    ),
    _kind(
        "vehicle",
        "car bus train truck taxi van tram bicycle motorbike wagon",
        "stop brake crash turn",
        "drive park ride catch",
        "fast slow late crowded",
    ),
    _kind(
        "boat", "boat ship ferry canoe raft yacht", "sail sink float", "row steer sail", "slow sinking wooden"
    ),
    _kind(
        "aircraft",
        "plane helicopter balloon kite rocket jet",
        "fly land take_off",
        "fly board",
        "fast high delayed",
    ),
    _kind(
        "machine",
        "engine computer printer radio television heater pump clock machine robot",
        "start hum break_down tick",
        "repair use start clean",
        "broken noisy hot",
    ),
    _kind(
        "stream",
        "river stream creek canal brook waterfall lake",
        "flow freeze flood rise",
        "cross",
        "deep wide frozen shallow",
    ),
    _kind(
        "food",
        "apple banana cake cookie pie sandwich pear egg potato tomato carrot pancake peach onion",
        "burn rot cook",
        "eat bake cook taste peel",
        "delicious sweet fresh rotten tasty",
    ),
    _kind(
        "meal",
        "bread cheese rice soup meat pasta butter honey sugar salad",
        "burn cook smell",
        "eat cook taste",
        "delicious salty fresh tasty",
        mass=True,
    ),
    _kind(
        "drink",
        "tea coffee milk juice lemonade cocoa water",
        "boil spill cool",
        "drink pour spill sip",
        "hot cold sweet warm",
        mass=True,
    ),
    _kind(
        "plant",
        "tree flower rose plant bush tulip vine fern lily oak",
        "grow bloom wilt",
        "water plant cut pick",
        "green dry tall",
    ),
    _kind(
        "clothing",
        "coat hat shirt dress jacket scarf skirt sweater shoe boot sock",
        "fit shrink tear",
        "wear wash iron sew",
        "wet warm tight dirty torn",
    ),
    _kind(
        "furniture",
        "table chair bed sofa bench desk shelf stool",
        "creak wobble",
        "move build polish",
        "comfortable wooden heavy",
    ),
    _kind(
        "reading",
        "book letter newspaper map magazine note poem story diary",
        "end",
        "read write print study",
        "boring interesting long funny",
    ),
    _kind(
        "fragile",
        "glass cup plate vase mirror bottle bowl mug",
        "break crack shatter",
        "break drop wash fill",
        "broken empty dirty clean",
    ),
    _kind(
        "show",
        "movie film play concert match game opera",
        "begin end start last",
        "watch enjoy miss",
        "boring exciting long funny",
    ),
    _kind(
        "instrument",
        "piano guitar violin drum flute trumpet",
        "sound",
        "play tune practice",
        "loud expensive",
    ),
    _kind(
        "tool",
        "hammer saw knife spade ladder rope broom brush axe",
        "rust bend slip",
        "use hold borrow",
        "sharp useful heavy",
    ),
    _kind("rolling", "ball wheel coin barrel marble", "roll bounce spin", "throw catch kick", "round light"),
)

ANIMALS: tuple[Kind, ...] = (
    _kind("dog", "dog puppy hound wolf fox", "bark growl howl", "walk feed train", "hungry wild loyal"),
    _kind("cat", "cat kitten leopard", "meow purr scratch", "feed stroke", "hungry soft sleepy"),
    _kind(
        "bird",
        "bird parrot eagle pigeon owl crow sparrow swan goose",
        "sing chirp fly",
        "feed watch free",
        "hungry wild",
    ),
    _kind("insect", "bee wasp mosquito fly beetle", "buzz sting crawl", "catch chase", "tiny annoying"),
    _kind(
        "horse", "horse pony donkey mule camel", "gallop neigh kick", "ride feed brush", "strong fast tired"
    ),
    _kind("cattle", "cow goat sheep bull lamb", "graze moo chew", "milk feed sell", "hungry calm"),
    _kind("fish", "fish shark whale dolphin salmon", "swim dive", "catch fry", "slippery wild"),
    _kind(
        "hopper",
        "frog rabbit squirrel kangaroo mouse",
        "hop jump hide",
        "chase catch feed",
        "tiny scared quick",
    ),
    _kind("beast", "lion bear tiger elephant dragon", "roar attack", "hunt fear", "dangerous wild strong"),
)

HE = _words(
    "man boy king father brother uncle son grandfather husband prince waiter gentleman nephew policeman "
    "fisherman monk"
)
SHE = _words(
    "woman girl queen mother sister aunt daughter grandmother wife princess waitress lady niece actress "
    "witch nun"
)
EITHER = _words(
    "person teacher doctor nurse farmer baker driver artist student friend pilot singer writer lawyer judge "
    "guard soldier sailor painter dancer worker stranger guest child captain cousin engineer scientist "
    "dentist gardener butcher librarian mechanic"
)
HE_NAMES = _words("bill tom john peter paul david george henry jack sam james max")
SHE_NAMES = _words("mary anna susan emma kate lucy alice jane sarah helen julia ruth")

PERSON_DOES = _phrases(
    "laugh,smile,cry,sneeze,shout,whisper,yawn,cough,nod,wave,dance,sigh,blush,faint,frown,snore,pray,"
    "wake up,sit down,stand up"
)
PERSON_DONE = _words("meet help thank call visit see know love follow hug greet invite")
PERSON_LIKE = _words(
    "tired hungry happy sad angry sick late afraid lonely thirsty bored nervous proud lost rich poor kind "
    "brave busy young"
)
KIN = _words(
    "father mother brother sister uncle aunt son daughter husband wife grandfather grandmother friend cousin"
)

# Where people go, the preposition for being there, what they do there. `{a:food}` is a noun phrase of that
# kind ("an apple"), `{some:food}` its plural or mass ("apples"), `{the:...}` a definite one.
PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "supermarket": ("at", ("buy {some:food}", "buy {some:meal}", "buy {some:drink}", "get food for dinner")),
    "market": ("at", ("buy {some:food}", "buy {some:meal}", "buy fresh {some:food}", "sell {some:food}")),
    "bakery": ("at", ("buy a cake", "buy some bread", "buy {num} cookies", "buy fresh bread")),
    "theatre": ("at", ("watch {a:show}", "see a new play", "watch a new play", "watch an old opera")),
    "cinema": ("at", ("watch a new movie", "see a film", "watch an old movie", "see a funny film")),
    "library": (
        "in",
        ("borrow {a:reading}", "read {a:reading}", "return {some:reading}", "study for the test"),
    ),
    "bank": ("in", ("put {my} money in the safe", "get some money", "save some money", "talk about money")),
    "school": ("at", ("learn to read", "study history", "teach the children", "take a test")),
    "hospital": ("in", ("see a doctor", "visit a sick friend", "get some medicine", "talk to the nurse")),
    "station": (
        "at",
        ("catch the train", "take the train", "buy a ticket for the train", "wait for the train"),
    ),
    "airport": ("at", ("catch a plane", "board the plane", "watch the planes", "wait for the plane")),
    "beach": ("on", ("swim in the sea", "lie in the sun", "play in the sand", "walk on the sand")),
    "park": ("in", ("walk the dog", "feed the birds", "ride a bicycle", "sit under {a:plant}")),
    "garden": ("in", ("water {the:plant}", "plant {a:plant}", "cut the grass", "pick some flowers")),
    "kitchen": ("in", ("cook {some:meal}", "bake a cake", "wash the dishes", "make dinner")),
    "restaurant": ("in", ("eat {some:meal}", "have dinner", "order {some:drink}", "have lunch")),
    "office": ("in", ("work at a desk", "use the computer", "write a report", "print a report")),
    "museum": ("in", ("see the old paintings", "look at the paintings", "see the statue", "learn about art")),
    "zoo": ("at", ("see {a:beast}", "feed the elephants", "look at {the:beast}", "see the tigers")),
    "farm": ("on", ("milk the cows", "feed {the:cattle}", "ride {a:horse}", "help the farmer")),
    "forest": ("in", ("cut some wood", "hunt {a:beast}", "look for mushrooms", "camp under the trees")),
    "river": ("by", ("catch some fish", "row {a:boat}", "swim in the water", "catch {a:fish}")),
    "factory": ("in", ("work with the machines", "repair {a:machine}", "build cars", "clean the machines")),
    "church": ("in", ("pray", "sing a hymn", "attend a wedding", "hear the priest")),
    "shop": ("in", ("buy {a:clothing}", "buy {a:fragile}", "buy a present", "sell {a:tool}")),
    "stadium": ("at", ("watch {a:show}", "watch the team", "cheer for the team", "run a race")),
    "port": ("at", ("board {a:boat}", "watch the ships", "meet the sailors", "wait for the ferry")),
    "hotel": ("in", ("sleep in a bed", "rent a room", "spend the night", "book a room")),
    "bathroom": ("in", ("take a bath", "wash {my} hands", "brush {my} teeth", "take a shower")),
    "garage": ("in", ("repair the car", "wash the car", "park the car", "clean the van")),
    "mountain": ("on", ("climb to the top", "ski in the snow", "walk in the snow", "camp in the snow")),
    "bookshop": ("in", ("buy {a:reading}", "buy a new book", "sell old books", "buy an old map")),
    "concert": ("at", ("hear the band", "listen to the music", "hear the singer", "play {the:instrument}")),
    "pharmacy": ("in", ("buy medicine", "get some medicine", "buy some pills", "ask for pills")),
}

# A state, what one does about it.
REMEDIES: dict[str, tuple[str, ...]] = {
    "hungry": ("eat {a:food}", "eat some {mass:meal}", "make a sandwich", "cook {some:meal}"),
    "thirsty": ("drink some {mass:drink}", "drink a glass of water", "ask for some water", "pour some juice"),
    "tired": ("go to bed", "sleep for hours", "lie down", "take a nap"),
    "sick": ("see a doctor", "take some medicine", "stay in bed", "call the nurse"),
    "cold": ("put on a coat", "put on a warm sweater", "light a fire", "close the window"),
    "hot": ("open the window", "take off the jacket", "eat some ice", "swim in the lake"),
    "dirty": ("take a bath", "take a shower", "wash with soap", "wash the shirt"),
    "bored": ("watch a movie", "read a story", "play a game", "visit a friend"),
    "late": ("run to the station", "take a taxi", "hurry to school", "run to the bus"),
    "lost": ("look at the map", "ask a policeman for help", "ask for directions", "study the map"),
    "sad": ("cry", "call a friend", "listen to some music", "sit alone"),
    "poor": ("save some money", "look for work", "sell the house", "ask for money"),
}

# What each of them does all day.
JOBS: dict[str, tuple[str, ...]] = {
    "teacher": ("teach the children", "work at the school"),
    "doctor": ("help sick people", "work in the hospital"),
    "nurse": ("care for sick people", "work in the hospital"),
    "farmer": ("milk the cows", "work on the farm"),
    "baker": ("bake bread", "bake cakes"),
    "driver": ("drive a truck", "drive a bus"),
    "artist": ("draw flowers", "paint faces"),
    "student": ("read books", "study history"),
    "pilot": ("fly planes", "fly a helicopter"),
    "singer": ("sing songs", "sing on the stage"),
    "writer": ("write stories", "write books"),
    "soldier": ("fight in the army", "guard the castle"),
    "sailor": ("sail ships", "work on a ship"),
    "painter": ("paint houses", "paint walls"),
    "dancer": ("dance on the stage", "dance to the music"),
    "engineer": ("build machines", "build bridges"),
    "scientist": ("study the stars", "work in a laboratory"),
    "dentist": ("pull teeth", "clean teeth"),
    "gardener": ("water the plants", "cut the grass"),
    "butcher": ("cut meat", "sell meat"),
    "librarian": ("lend books", "work in the library"),
    "mechanic": ("repair cars", "repair engines"),
    "waiter": ("serve food", "bring the food"),
    "fisherman": ("catch fish", "sell fish"),
    "policeman": ("catch thieves", "stop the cars"),
}

# How a story begins (past) and what it came to: "and that is how ...". {who} is "i", "she", "your mother"...
ENDINGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "meet": (
        (
            "we danced at a wedding",
            "we sat on the same train",
            "she lived next to my school",
            "he worked in my office",
            "we talked at a party",
            "we were at the same school",
            "a friend invited us to a party",
            "we shared a table in a restaurant",
            "we said hello at the station",
        ),
        ("met {kin}", "met {kin}", "met {kin}", "found a friend"),
    ),
    "lose": (
        (
            "there was a hole in my pocket",
            "a thief ran away with my bag",
            "the box fell into the river",
            "i left my bag on the train",
            "the wind took everything away",
        ),
        ("lost {my} {lostthing}", "lost {my} {lostthing}"),
    ),
    "learn": (
        (
            "my grandmother gave me lessons",
            "the teacher was patient with us",
            "we practiced every day",
            "i took lessons every week",
            "the old man explained everything",
        ),
        ("learned to {skill}", "learned to {skill}"),
    ),
    "hurt": (
        (
            "the floor was wet",
            "the ladder was broken",
            "i fell off my horse",
            "there was ice on the road",
            "the stairs were dark",
        ),
        ("broke {my} {limb}", "hurt {my} {limb}"),
    ),
    "rich": (
        (
            "there was gold under the house",
            "we sold the old farm",
            "my uncle left us his money",
            "we found a chest full of coins",
            "the shop sold everything",
        ),
        ("became rich", "bought {a:boat}"),
    ),
    "win": (
        (
            "we were faster than the others",
            "our team played well",
            "nobody ran like us",
            "the judge liked our song",
        ),
        ("won the race", "won the prize"),
    ),
}
SKILLS = _phrases("swim,read,cook,dance,ride a horse,drive,play the piano,sing,write,sail,ski")
LIMBS = _words("arm leg foot hand finger nose")
LOST_THINGS = _words("ring key watch hat money bag shoes glasses ticket wallet")

TRAITS = _words(
    "old new big small little beautiful strange heavy expensive broken red blue green white black brown"
)
PERSON_TRAITS = _words("old young tall little clever strange kind beautiful rich poor famous")
ADVERBS = _words("slowly quickly suddenly quietly loudly again")
TIMES = _phrases(
    "yesterday,today,last night,this morning,every day,after lunch,before dinner,at noon,at night,on monday,"
    "on friday,on sunday,in summer,in winter,in the evening,in the morning,last week,all day,for an hour"
)
NUMBERS = _words("two three four five six seven eight nine ten")
ROOMS = _phrases(
    "in the kitchen,in the garden,in the hall,in the yard,in the street,on the hill,in the corner,"
    "by the wall,in the bedroom,at the end of the street,in the basement,on the roof,in the village,"
    "in the city,behind the house,under the bridge,in the castle,"
    "near the church,on the road,in the field,by the fire"
)
WATCHING = _phrases(
    "watching,looking at,staring at,thinking about,waiting for,listening to,pointing at,standing near,"
    "sitting next to,talking about,dreaming about,searching for,walking past"
)
NOTICED = _phrases("saw,found,noticed,heard,remembered,showed us,described,liked,wanted,hated")
BETWEEN = _phrases("near,next to,beside,behind,in front of,with,and")
# Words that are known because they occur in the example sentences or in plain questions.
FRAMES = {
    "wish": ("would like to", "want to", "have to", "need to", "hope to", "plan to"),
    "when": ("when", "when", "when", "as", "before", "after", "until", "while", "because", "but then"),
}
