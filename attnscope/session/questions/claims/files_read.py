"""The picture or the sound that a stored run was made of, found again by the hash of its file."""

from dataclasses import dataclass
from pathlib import Path

from attnscope import incoming
from attnscope.errors import InputError
from attnscope.results import (
    HeadWeights,
    Overview,
    Picture,
    PictureAttention,
    PictureHeads,
    Result,
    Sound,
    SoundAttention,
    SoundHeads,
)
from attnscope.session.request import Inputs
from attnscope.tokens import Frames, Patches

Medium = Picture | Sound


@dataclass(frozen=True)
class Given:
    """The files that the user says a run was made of."""

    image: Path | None = None
    audio: Path | None = None

    @property
    def only(self) -> Path | None:
        """The one that is given; `InputError` where both are."""
        if self.image is not None and self.audio is not None:
            raise InputError("--image and --audio: give one of the two")
        return self.image or self.audio


def medium_in(stored: Result) -> Medium | None:
    """What was read and is no text, where the file says which it was."""
    if isinstance(stored, PictureAttention | PictureHeads):
        return stored.picture
    return stored.sound if isinstance(stored, SoundAttention | SoundHeads) else None


def heads_in(stored: Result) -> Result:
    """The heads that were laid over a picture or a sound, else the result itself."""
    if isinstance(stored, PictureAttention | SoundAttention):
        return stored.head
    return stored.overview if isinstance(stored, PictureHeads | SoundHeads) else stored


def inputs_of(
    shown: Overview | HeadWeights, medium: Medium | None, given: Given, run: Path
) -> tuple[Inputs, list[str]] | None:
    """What the run reads, and what of it is not as it was; None where that was a text alone.

    A file that is not given is looked for beside the `run` and in this folder. Raises `InputError` where it
    is not there, or is another one than was read.
    """
    name, file = run.name, given.only
    if medium is None and not _sensed(shown):
        if file is not None:
            raise InputError(f"{name} is of a text: leave --image and --audio out")
        return None
    heard = isinstance(medium, Sound) or _of_sound(shown)
    option = "--audio" if heard else "--image"
    if file is not None and (given.audio is not None) is not heard and (medium or _named(shown)):
        raise InputError(f"{name} is of a {'sound' if heard else 'picture'}: give it with {option}")
    changes = []
    if medium is None:
        if file is None:
            raise InputError(
                f"{name} does not say which picture or sound it is of: give the file with --image or --audio"
            )
        changes.append(f"the file does not say what was read: {file.name} was taken for it")
        heard = given.audio is not None
    else:
        file = _found(medium, file, run, option)
    texts = shown.query_tokens.texts
    text = texts[0] if texts else None
    return (Inputs(text=text, audio=file) if heard else Inputs(text=text, image=file)), changes


def _found(medium: Medium, given: Path | None, run: Path, option: str) -> Path:
    own = Path(medium.name).name
    places = [run.parent / own, Path(own)]
    there = given or next((place for place in places if place.is_file()), None)
    if there is None:
        where = f"is neither beside {run.name} nor here"
        raise InputError(f"{own} {where}: give the file that was read with {option}")
    digest = incoming.sha256(there)
    if digest != medium.digest:
        raise InputError(
            f"{there} is not the file that was read: its sha256 is {digest[:12]}, stored is "
            f"{medium.digest[:12]}: give that one with {option}"
        )
    return there


def _sensed(shown: Overview | HeadWeights) -> bool:
    ids = shown.provenance.token_ids
    return not ids or min(ids) < 0 or _named(shown)


def _named(shown: Overview | HeadWeights) -> bool:
    return bool(shown.query_tokens.stretches or shown.key_tokens.stretches)


def _of_sound(shown: Overview | HeadWeights) -> bool:
    every = (*shown.query_tokens.stretches, *shown.key_tokens.stretches)
    return any(isinstance(stretch, Frames) for stretch in every) and not any(
        isinstance(e, Patches) for e in every
    )
