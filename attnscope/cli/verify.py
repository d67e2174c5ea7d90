"""`attnscope verify`: every layer and head of a model at once, one exit code."""

from dataclasses import replace
from typing import TYPE_CHECKING

from attnscope.cli import options
from attnscope.cli.groups import Request
from attnscope.cli.media import Media, SparedTexts
from attnscope.cli.output import NUMBERS, Output, check_targets, finish, save
from attnscope.cli.session import encode, find_checkpoint, inputs_of, loading, read_target, tell_memory

if TYPE_CHECKING:
    from attnscope.model.inputs.text import Encoded


def verify(
    texts: SparedTexts,
    media: Media,
    out: options.Numbers = None,
    json: options.Json = False,
    *,
    request: Request,
    output: Output,
) -> None:
    """Certify every layer and head of a model, and its results.

    The final hidden states and logits are held against a run that was not touched. Exit code 5 when
    a certificate fails or a result changes while the model is watched.
    """
    targets, read = list(out or []), texts.beside(media)
    check_targets(targets, NUMBERS)
    checkpoint = find_checkpoint(request, output)
    with loading(checkpoint, output):
        from attnscope.analysis import verification
        from attnscope.capture import provenance_of
        from attnscope.capture.faults import if_it_runs
        from attnscope.model.loading.load import load_with_head

        model = load_with_head(checkpoint, **request.loading)
    tell_memory(model, output)
    encoded: Encoded
    medium = None
    if media.given:
        from attnscope.model.media.perceive import read_media

        perceived = read_media(model, image=media.image, audio=media.audio, texts=read)
        for notice in perceived.notices:
            output.notice(notice)
        encoded, medium = perceived, perceived.medium
    else:
        encoded = encode(model, read, output, truncate=texts.truncate)
    target = read_target(model, encoded, texts.target, output)
    inputs = inputs_of(encoded, target)
    with output.working("certifying every head"), if_it_runs(model.module, inputs, model.name):
        provenance = provenance_of(model.module, encoded.tokens, model.origin())
        result = verification(
            model.module,
            inputs,
            encoded.tokens,
            provenance,
            None if target is None else target.tokens,
        )
    if medium is not None:
        from attnscope.render.media.words import file_words

        result = replace(result, notes=(file_words(medium), *result.notes))
    save(output, targets, result)
    if json:
        output.document(result)
    else:
        from attnscope.render import screen as terminal

        output.show(terminal.header(result), terminal.verification(result, output.width))
    finish(result.verdict)
