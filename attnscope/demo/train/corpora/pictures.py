"""Pictures of one to three coloured shapes, each with the one sentence that is true of it.

Where a shape lies is known exactly, so it can be asked whether a model looks there. Picture `number` of a
seed is always the same, whatever was drawn before it.

Kept out of training: one sentence in ten of those about two or three shapes, by a checksum of its text.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIDE, PATCH = 64, 8  # pixels of a picture, and of a patch as the model cuts it
GRID = SIDE // PATCH
HELD_OUT_SHARE = 10
COLOURS = {
    "red": (214, 40, 40), "green": (44, 150, 60), "blue": (40, 80, 210),
    "yellow": (240, 200, 30), "purple": (140, 60, 170), "black": (30, 30, 30),
}  # fmt: skip
FORMS = ("square", "circle", "triangle")
WORDS = ("a", "above", "and", "left", "of", *COLOURS, *FORMS)
RELATIONS = {"left": ("left", "of"), "above": ("above",)}
SMALLEST, LARGEST = 6.0, 9.5  # radius of a shape, in pixels
GAP = 6.0  # by how much a relation is clearer than the other one, in pixels
CANDIDATES = 32  # layouts that are drawn at a time
COVERED = 1.0  # a patch shows a shape from so many of its pixels on

Counts = tuple[float, float, float]  # how often a picture has one, two, three shapes
EVENLY: Counts = (0.2, 0.4, 0.4)
ONLY: dict[int, Counts] = {1: (1, 0, 0), 2: (0, 1, 0), 3: (0, 0, 1)}
Generator = np.random.Generator
Numbers = NDArray[np.float64]
Mask = NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """One shape: its words, and where it lies, in pixels from the upper left corner."""

    colour: str
    form: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Scene:
    """The shapes in the order in which the sentence names them; the first is left of or above the others."""

    shapes: tuple[Shape, ...]
    relations: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The sentence."""
        said: list[str] = []
        for place, shape in enumerate(self.shapes):
            said += ["and"] if place == 2 else []
            said += RELATIONS[self.relations[place - 1]] if place else ()
            said += ["a", shape.colour, shape.form]
        return tuple(said)

    @property
    def sentence(self) -> str:
        return " ".join(self.words)

    def places(self) -> list[int]:
        """For every shape the index of its colour word; the next one is the word of its form."""
        return [place + 1 for place, word in enumerate(self.words) if word == "a"]


LONGEST = 13  # words: a red square left of a blue circle and above a black triangle


def is_held_out(scene: Scene) -> bool:
    """Whether the sentence of this scene never enters training."""
    return len(scene.shapes) > 1 and zlib.crc32(scene.sentence.encode()) % HELD_OUT_SHARE == 0


def _left_of(one: Numbers, other: Numbers, room: Numbers) -> NDArray[np.bool_]:
    """Whether `one` is left of `other`, `room` between the centres, and less far above or below it."""
    across, down = np.moveaxis(other - one, -1, 0)
    return np.asarray((across > room) & (across - np.abs(down) > GAP))


def _laid_out(chooser: Generator, count: int) -> tuple[Numbers, Numbers, tuple[str, ...]]:
    """Centres (x, y), radii and relations, drawn until every relation is clear and nothing touches.

    Candidates are drawn many at a time; the first that will do is taken.
    """
    while True:
        radius = chooser.uniform(SMALLEST, LARGEST, (CANDIDATES, count))
        centre = chooser.uniform(radius[..., None] + 1, SIDE - 1 - radius[..., None], (CANDIDATES, count, 2))
        if count == 1:
            return centre[0], radius[0], ()
        found = _relations(centre, radius)
        place, relations = min(
            ((int(fits.argmax()), names) for names, fits in found.items() if fits.any()),
            default=(-1, ()),
        )
        if relations:
            return centre[place], radius[place], relations


def _relations(centre: Numbers, radius: Numbers) -> dict[tuple[str, ...], NDArray[np.bool_]]:
    """For every possible list of relations, which of the candidates show it: `candidate shape (x y)`."""
    first, second = centre[:, 0], centre[:, 1]
    left = _left_of(first, second, radius[:, 0] + radius[:, 1] + 1)
    if centre.shape[1] == 2:
        above = _left_of(first[:, ::-1], second[:, ::-1], radius[:, 0] + radius[:, 1] + 1)
        return {("left",): left, ("above",): above}
    third = centre[:, 2]
    above = _left_of(first[:, ::-1], third[:, ::-1], radius[:, 0] + radius[:, 2] + 1)
    apart = np.abs(second - third).max(-1) > radius[:, 1] + radius[:, 2] + 1
    return {("left", "above"): left & above & apart}


def _any_scene(chooser: Generator, counts: Counts) -> Scene:
    count = int(chooser.choice(3, p=counts)) + 1
    centre, radius, relations = _laid_out(chooser, count)
    kinds = chooser.choice(len(COLOURS) * len(FORMS), count, replace=False)  # no two alike
    names = list(COLOURS)
    shapes = (
        Shape(names[kind // len(FORMS)], FORMS[kind % len(FORMS)], *map(float, (*at, size)))
        for kind, at, size in zip(kinds, centre, radius, strict=True)
    )
    return Scene(tuple(shapes), relations)


def scene(chooser: Generator, counts: Counts = EVENLY, held_out: bool = False) -> Scene:
    """A scene that may be trained on; with `held_out`, one that never is (one shape may always be both).

    How many shapes a held-out one has is drawn first, so that the few held-out sentences do not get fewer.
    """
    if held_out:
        count = int(chooser.choice(3, p=counts)) + 1
        counts = ONLY[count]
    while True:
        one = _any_scene(chooser, counts)
        if is_held_out(one) == (held_out and len(one.shapes) > 1):
            return one


def _box(shape: Shape, scale: int) -> tuple[slice, slice]:
    """Rows and columns of the pixels around a shape; no other pixel is touched."""
    around = shape.radius + 2
    return tuple(  # type: ignore[return-value]
        slice(max(0, int((at - around) * scale)), min(SIDE, int(at + around) + 1) * scale)
        for at in (shape.y, shape.x)
    )


def _mask(shape: Shape, scale: int) -> Mask:
    """How much of every pixel of its box a shape covers, from 0 to 1; the edges are smooth."""
    rows, columns = (np.arange(part.start, part.stop, dtype=np.float32) for part in _box(shape, scale))
    across = np.abs((columns[None, :] + 0.5) / scale - shape.x)
    down = (rows[:, None] + 0.5) / scale - shape.y
    if shape.form == "circle":
        outside = np.hypot(across, down) - shape.radius
    elif shape.form == "square":
        outside = np.maximum(across, np.abs(down)) - 0.88 * shape.radius
    else:  # its point is at the top
        outside = np.maximum(down - 0.8 * shape.radius, across * 0.894 - (down + shape.radius) * 0.447)
    return np.asarray(np.clip(0.5 - outside * scale, 0, 1), np.float32)


def patches(shape: Shape) -> NDArray[np.bool_]:
    """Which patches show the shape, row by row."""
    pixels = np.zeros((SIDE, SIDE), np.float32)
    pixels[_box(shape, 1)] = _mask(shape, 1)
    return np.asarray(pixels.reshape(GRID, PATCH, GRID, PATCH).sum((1, 3)) > COVERED).ravel()


def paint(scene: Scene, chooser: Generator, scale: int = 1, grain: float = 5.0) -> NDArray[np.uint8]:
    """The picture, `height width colour`: a light ground, shades that vary, and noise up to `grain`."""
    side = SIDE * scale
    ground = chooser.uniform(225, 255) + chooser.normal(0, 3, 3)
    canvas = np.full((side, side, 3), ground, np.float32)
    for shape in scene.shapes:
        shade = np.array(COLOURS[shape.colour]) + chooser.normal(0, 10, 3)
        around = canvas[_box(shape, scale)]
        around += _mask(shape, scale)[..., None] * (shade.astype(np.float32) - around)
    level = np.float32(chooser.uniform(0, grain))
    canvas += level * chooser.standard_normal(canvas.shape, np.float32)
    return canvas.clip(0, 255).round().astype(np.uint8)


def picture(
    seed: int, number: int, counts: Counts = EVENLY, held_out: bool = False
) -> tuple[Scene, NDArray[np.uint8]]:
    """Picture `number` of a seed, with its scene."""
    chooser = np.random.default_rng([seed, number])
    one = scene(chooser, counts, held_out)
    return one, paint(one, chooser)


def digest(scenes: Iterable[Scene]) -> str:
    """A checksum of scenes in their order: what is said, and where it lies to a thousandth of a pixel."""
    sums = hashlib.sha256()
    for one in scenes:
        places = " ".join(f"{each.x:.3f} {each.y:.3f} {each.radius:.3f}" for each in one.shapes)
        sums.update(f"{one.sentence}|{places}\n".encode())
    return sums.hexdigest()
