"""A result for every case and every optional part of what is said of a model from outside."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from made_outlines import decoder, layer, outline, sight

from attnscope.render.sheets import outline as sheets
from attnscope.results import Kind, Outline, Position, Storage
from attnscope.results.outline import Case

SAID, CASES = sheets.said, Case
SEEN = replace(sight(), layers=sight().layers[:3])


def cost(**changed: Any) -> Outline:
    whole = outline()
    assert whole.cost is not None
    return replace(whole, cost=replace(whole.cost, **changed))


def lengths(reads: bool = True) -> Outline:
    """At two lengths; the model reads less than the longer one."""
    whole = outline() if reads else cost(tower="other")
    assert whole.cost is not None
    short, long = (replace(whole.cost, length=n, queries=n, keys=n) for n in (128, 1024))
    return replace(whole, cost=replace(long, beyond=True), further=(short,))


def odd() -> Outline:
    """Layers of all that most have not, and positions of every kind."""
    both = (Position("learned", size=64), Position("rotary", dims=4, base=10000.0))
    all_at_once = layer(0, window=4, chunk=6, softcap=2.5, sinks=True, scale=1.0, blocks=3, positions=both)
    tower = replace(
        decoder(), kind=Kind.CROSS, layers=(all_at_once, layer(1, positions=()), layer(2, heads=None))
    )
    return replace(outline(), towers=(tower,))


def stored(storage: Storage | None, **changed: Any) -> Outline:
    return replace(outline(), storage=storage, **changed)


EXAMPLES: dict[str, Callable[[], Outline]] = {
    "several towers": outline,
    "a decoder": lambda: replace(outline(), towers=(decoder(),)),
    "an encoder": lambda: replace(outline(), towers=(sight(),)),
    "all seen": lambda: replace(outline(), towers=(SEEN,), run=""),
    "a window of an encoder": lambda: replace(
        outline(), towers=(replace(SEEN, layers=(layer(0, window=4), layer(1, positions=()))),)
    ),
    "nothing": lambda: replace(outline(), towers=(), cost=None),
    "bundled": lambda: replace(outline(), demo=True, revision=None, cost=None, gaps=()),
    "of two texts": lambda: cost(keys=20, layers_loaded=None, shards=()),
    "lengths": lengths,
    "lengths, none known to be read": lambda: lengths(reads=False),
    "too long": lambda: cost(beyond=True),
    "odd layers": odd,
    "some files are not here": lambda: stored(Storage("on this machine", 2, None, None, {"a": 5, "b": None})),
    "nothing stored": lambda: stored(None, unlisted="there is nothing"),
}
NUMBERS: dict[str, tuple[str, ...]] = {  # the case of an example, and what its answer has
    "several towers": (
        Case.SEVERAL,
        "text_model (decoder) and vision (encoder)",
        "14 layers",
        "2 to 16 heads",
    ),
    "a decoder": (
        Case.ONE,
        "a decoder",
        "10 layers of 16 heads",
        "6.15 billion",
        "8,192",
        "share 4 key heads",
    ),
    "an encoder": (Case.ONE, "an encoder", "4 layers of 2 to 3 heads", "SomeModel"),
    "nothing": (Case.NOTHING, "someone/model", "6.15 billion"),
}
