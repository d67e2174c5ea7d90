"""Outlines as analyses would make them, with numbers that are easy to tell apart."""

from dataclasses import replace

from attnscope.results import Cost, Gap, Kind, LayerOutline, Outline, Position, Route, Storage, TowerOutline

ROTARY = Position("rotary", dims=32, base=500000.0, variant="yarn")


def layer(number: int, **changes: object) -> LayerOutline:
    plain = LayerOutline(
        layer=number, module=f"model.layers.{number}.self_attn", seen=True, heads=16, key_heads=4, dim=64,
        value_dim=48, scale=0.125, positions=(ROTARY,), window=None, chunk=None, softcap=None, sinks=False,
        blocks=1, queries=300, keys=300,
    )  # fmt: skip
    return replace(plain, **changes)


def decoder() -> TowerOutline:
    """Every third layer looks at all, the others at a window; layers 4 and 5 do not attend."""
    numbers = [number for number in range(12) if number not in (4, 5)]
    full = {"window": None, "positions": ()}
    special = {"softcap": 30.0, "sinks": True}
    layers = (layer(n, **special, **(full if n % 3 == 2 else {"window": 128})) for n in numbers)
    return TowerOutline(
        "text_model", Kind.DECODER, "model.layers.*.self_attn", Route.TAKEOVER, "eager", 8192, tuple(layers)
    )


def sight() -> TowerOutline:
    """Two stages of windows; the last layer was not run and little is known of it."""
    sizes = {"dim": 8, "value_dim": 8, "scale": 0.5, "positions": (Position("relative"),)}
    counts = ((0, 2, 16), (1, 2, 16), (2, 3, 4))
    seen = [layer(n, heads=heads, key_heads=heads, blocks=blocks, **sizes) for n, heads, blocks in counts]
    places = (Position("learned", size=50),)
    unseen = LayerOutline(layer=3, module="vision.3", seen=False, heads=3, positions=places)
    return TowerOutline(
        "vision", Kind.ENCODER, "vision.*", Route.TRACED, "the model's own code", None, (*seen, unseen)
    )


def outline() -> Outline:
    shards = {f"model-{number:05}-of-00003.safetensors": 4_100_000_000 for number in (1, 2, 3)}
    cost = Cost(
        tower="text_model", kind=Kind.DECODER, layer=7, length=300, queries=300, keys=300,
        forward_flops=1_234_000_000_000, head_flops=20_160_000, repeats=11, layers_loaded=8,
        weights=16_400_000_000, operands=7_200_000, kernel=11_500_000, reference=8_900_000,
        shards=tuple(shards)[:2],
    )  # fmt: skip
    return Outline(
        requested="someone/model", model="someone/model", demo=False, revision="0123456789abcdef",
        architecture="SomeModel", model_type="some", versions={"torch": "2.13.0", "attnscope": "0.1.0"},
        parameters=6_150_000_000, storage=Storage("on the hub", 3, 12_300_000_000, "bfloat16", shards),
        towers=(decoder(), sight()), gaps=(Gap("model.layers", (4, 5), "SomeMixer"),), length=300,
        run="no picture", cost=cost,
    )  # fmt: skip
