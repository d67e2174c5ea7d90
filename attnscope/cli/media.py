"""`heads --image` and `heads --audio`: attention of one query laid over a picture or a sound."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli import options, selection
from attnscope.cli.groups import ROUTES, Request, Texts, Wanted, decoded
from attnscope.cli.output import Output, finish, save
from attnscope.cli.session import (
    Session,
    chosen_heads,
    find_checkpoint,
    loading,
    read_target,
    tell_memory,
)
from attnscope.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from attnscope.attention import Capture
    from attnscope.model.anatomy.towers import Tower
    from attnscope.model.loading.load import Plan
    from attnscope.model.media.perceive import Perceived
    from attnscope.results import PictureAttention, PictureHeads, SoundAttention, SoundHeads, Verdict
    from attnscope.tokens import Tokens

    Laid = PictureAttention | PictureHeads | SoundAttention | SoundHeads

MEAN = "mean"
_TIME = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?s")


@dataclass(frozen=True)
class Media:
    """What the model reads that is no text."""

    PANEL = "What is read"

    image: options.Image = None
    audio: options.Audio = None

    def __post_init__(self) -> None:
        if self.image is not None and self.audio is not None:
            raise InputError("--image and --audio: give one of the two")

    @property
    def given(self) -> bool:
        return self.image is not None or self.audio is not None


@dataclass(frozen=True)
class SparedTexts(Texts):
    """Texts that a picture or a sound may take the place of."""

    text: options.SparedText = None  # type: ignore[assignment]

    def read(self) -> tuple[str, ...]:
        if self.text is None:
            raise InputError("give a text to read, or a file with --image or --audio")
        return super().read()

    def beside(self, media: Media) -> tuple[str, ...]:
        """The same, none where a picture or a sound is read alone."""
        if not media.given or self.text is not None:
            return self.read()
        if self.pair is not None:
            raise InputError("--pair is a second text: there is no first one, leave --pair out")
        return ()


@dataclass(frozen=True, eq=False)
class Sensing:
    """A session on something that is no text, which `perceived` tells more about."""

    session: Session
    perceived: "Perceived"

    @property
    def one(self) -> bool:
        return len(self.session.layers) == len(self.session.heads) == 1

    def capture(self) -> "Capture":
        """The attention of the chosen heads, its positions called as far as they are known."""
        from attnscope.capture import capture, provenance_of
        from attnscope.capture.faults import if_it_runs
        from attnscope.model.media.perceive import sees
        from attnscope.results import Kind, Route

        session, perceived, model = self.session, self.perceived, self.session.model
        cross = session.kind is Kind.CROSS
        seeing = cross or sees(model.module, session.tower.sites)
        target = perceived.tokens if cross else None  # a text that looks at a picture
        with if_it_runs(model.module, session.inputs, model.name):
            captured = capture(
                model.module,
                session.inputs,
                layers=session.layers,
                heads=session.heads,
                kind=session.kind,
                tower=session.tower.pattern,
                route=None if session.route is None else Route(session.route),
                tokens=perceived.positions if seeing else perceived.tokens,
                target=target if session.target is None else session.target.tokens,
                provenance=provenance_of(model.module, perceived.read, model.origin()),
            )
        return self._windows(captured) if seeing and not cross and len(session.layers) == 1 else captured

    def _windows(self, captured: "Capture") -> "Capture":
        """The same with the positions of windows called by their patches, where a layer reads in windows."""
        from attnscope.model.anatomy.sites import sites
        from attnscope.model.media.perceive import window_names

        session, (layer,) = self.session, self.session.layers
        size = len(captured.calls[0].key_tokens)
        if size == len(self.perceived.positions):
            return captured
        site = next(site for site in session.tower.sites if layer in site.layers)
        own = next(each for each in sites(session.model.module) if each.path == site.path)
        names = window_names(session.model, self.perceived, own, size)
        if names is None:
            return captured
        calls = (replace(c, query_tokens=names[c.block], key_tokens=names[c.block]) for c in captured.calls)
        return replace(captured, calls=tuple(calls))


def check_media(others: list[str]) -> None:
    """Raises `InputError` where options are given that a picture or a sound has no use for."""
    if others:
        raise InputError(
            f"--image and --audio show the weights of one query: leave {' and '.join(others)} out"
        )


def show_media(
    media: Media,
    texts: SparedTexts,
    wanted: Wanted,
    request: Request,
    output: Output,
    targets: list[Path],
    *,
    query: str | None,
    json: bool,
) -> None:
    """The chosen head over the picture or the sound; several of them side by side."""
    sensing = open_media(media, texts, wanted, request, output)
    with output.working("reading the attention"):
        result = laid_over(sensing, query, output)
    save(output, targets, result, lambda: _figure(result))
    if json:
        output.document(result)
    else:
        output.show(*_lines(result, output.width))
    finish(_verdict(result))


def open_media(media: Media, texts: SparedTexts, wanted: Wanted, request: Request, output: Output) -> Sensing:
    """The model loaded up to the last of the chosen layers, and the picture or the sound read for it."""
    wanted_layers = selection.parse(wanted.layer, "layer")
    wanted_heads = selection.parse(wanted.head, "head")
    read = texts.beside(media)
    checkpoint = find_checkpoint(request, output)
    with loading(checkpoint, output):
        from attnscope.model.loading import load
        from attnscope.model.loading.classes import saved_class

        planned = load.plan(checkpoint, choose=saved_class, remote_code=request.trust_remote_code)
        tower = _tower(planned, wanted, output)
        layers, heads = chosen_heads(planned, tower, wanted_layers, wanted_heads, output)
        model = load.load(planned, layers=max(layers) + 1, **request.loading)
    tell_memory(model, output)
    with output.working("reading the file"):
        from attnscope.model.media.perceive import read_media

        perceived = read_media(model, image=media.image, audio=media.audio, texts=read)
    for notice in perceived.notices:
        output.notice(notice)
    target = read_target(model, perceived, texts.target, output, kind=tower.kind)
    route = None if wanted.route is None else ROUTES[wanted.route]
    session = Session(model, perceived, target, tower, layers, heads, None, wanted.block, route)
    return Sensing(session, perceived)


def _tower(planned: "Plan", wanted: Wanted, output: Output) -> "Tower":
    """The attention to look at: what is wanted, else where a text looks at the picture, else what sees it."""
    from attnscope.model.anatomy.towers import choose_tower, reading_text
    from attnscope.model.media.perceive import sees, splices
    from attnscope.results import Kind

    kind = None if wanted.kind is None else Kind(wanted.kind)
    if kind is not None or wanted.tower is not None or len(planned.towers) < 2:
        return choose_tower(planned.towers, kind, wanted.tower, planned.name)
    crosses = any(tower.kind is Kind.CROSS for tower in planned.towers)
    seeing = [tower for tower in planned.towers if sees(planned.skeleton, tower.sites)]
    chosen = reading_text(planned.towers) if crosses or splices(planned.config) or not seeing else seeing[0]
    there = ", ".join(tower.called for tower in planned.towers)
    output.notice(f"{planned.name} has attention in {there}: showing {chosen.called} (--tower chooses)")
    return chosen


def laid_over(sensing: Sensing, query: str | None, output: Output) -> "Laid":
    """The attention of `query` over the medium; which one is looked at where none is named is said."""
    from attnscope.analysis import head_attention, overview
    from attnscope.analysis.media import heads_over_picture, heads_over_sound, over_picture, over_sound
    from attnscope.results import Picture

    session, medium, captured = sensing.session, sensing.perceived.medium, sensing.capture()
    if medium is None:
        raise InputError(f"{session.model.name} reads a picture in pieces: it cannot be laid over one")
    windows = max(call.block for call in captured.calls) + 1
    if windows > 1:
        if len(session.layers) > 1:
            raise InputError(
                f"each layer of {session.model.name} has windows of its own: name one with --layer"
            )
        shown = captured.call(session.layers[0], block=session.block).block
        output.notice(f"it is read in {windows} windows: showing {shown} (--block chooses)")
    if sensing.one:
        head = head_attention(captured, session.layers[0], session.heads[0], block=session.block)
        position = _query(head.query_tokens, head.key_tokens, query, output)
        over = over_picture if isinstance(medium, Picture) else over_sound
        return over(head, medium, position)  # type: ignore[arg-type]
    several = overview(captured, session.heads, session.block)
    position = _query(several.query_tokens, several.key_tokens, query, output)
    all_over = heads_over_picture if isinstance(medium, Picture) else heads_over_sound
    return all_over(several, medium, position)  # type: ignore[arg-type]


def _query(tokens: "Tokens", keys: "Tokens", wanted: str | None, output: Output) -> int | None:
    """Position of the query, None for the mean over all."""
    from attnscope.analysis.media import default_query

    if wanted is not None:
        wanted = frame_at(decoded(wanted), tokens.names)
        return None if wanted == MEAN and MEAN not in tokens.names else tokens.position(wanted)
    chosen = default_query(tokens, keys)
    shown = f"the mean over all {len(tokens)} queries" if chosen is None else f"query {tokens.labels[chosen]}"
    output.notice(f"showing {shown} (--query chooses)")
    return chosen


def frame_at(wanted: str, names: Sequence[str]) -> str:
    """The frame that holds a time such as `7.77s`, as it is called; what is no time within them as it is."""
    starts = {float(name[:-1]): name for name in names if _TIME.fullmatch(name)}
    if wanted in names or not starts or not _TIME.fullmatch(wanted):
        return wanted
    time, every = float(wanted[:-1]), sorted(starts)
    step = every[1] - every[0] if len(every) > 1 else 0.0
    within = [start for start in every if start <= time < start + step + 1e-9]
    return starts[within[-1]] if within else wanted


def _figure(result: "Laid") -> "Figure":
    from attnscope.render.media import picture_figure, sound_figure
    from attnscope.results import PictureAttention, PictureHeads, SoundAttention

    if isinstance(result, PictureAttention):
        return picture_figure.picture_figure(result)
    if isinstance(result, PictureHeads):
        return picture_figure.picture_heads_figure(result)
    if isinstance(result, SoundAttention):
        return sound_figure.sound_figure(result)
    return sound_figure.sound_heads_figure(result)


def _lines(result: "Laid", width: int) -> "list[RenderableType]":
    from attnscope.render import screen as terminal
    from attnscope.render.media.picture_terminal import picture_heads, picture_patches
    from attnscope.render.media.sound_terminal import sound_frames, sound_heads
    from attnscope.render.media.words import medium_line
    from attnscope.results import PictureAttention, PictureHeads, SoundAttention

    if isinstance(result, PictureAttention | SoundAttention):
        body = (
            picture_patches(result, width)
            if isinstance(result, PictureAttention)
            else sound_frames(result, width)
        )
        certificate = terminal.certificate_line(result.head.certificate)
        return [terminal.header(result.head), medium_line(result), certificate, "", body]
    body = picture_heads(result, width) if isinstance(result, PictureHeads) else sound_heads(result, width)
    return [terminal.header(result.overview), medium_line(result), "", body]


def _verdict(result: "Laid") -> "Verdict":
    """The worst of all that is shown."""
    from attnscope.results import PictureAttention, SoundAttention

    if isinstance(result, PictureAttention | SoundAttention):
        return result.head.certificate.verdict
    every = (each.verdict for layer in result.overview.certificates for each in layer)
    return max(every, key=lambda verdict: verdict.rank)
