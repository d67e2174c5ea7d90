"""The lines that are always in sight: which head, which pair, and whether these numbers are proved."""

from rich.style import Style
from rich.text import Text

from attnscope.explore.state import State
from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import weight_text
from attnscope.render.kit.words.certificate import STYLES, certificate_line, verdict_words
from attnscope.render.kit.words.header import model_words
from attnscope.render.kit.words.weights import head_of
from attnscope.results import Certificate, HeadView, HeadWeights, Verdict

FAILED = Style(bold=True, color="white", bgcolor="red", reverse=False)


def header(state: State, shown: HeadWeights | HeadView, query: int | None, key: int | None) -> Text:
    """`demo · L2 H1 encoder · 1 I → 9 . .648 · ✓ certified`."""
    head = head_of(shown)
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(head.name, Style(bold=True, reverse=True))
    if len(state.scene.towers) > 1:
        line.append(f" {state.scene.tower.name}")
    name = head.query_tokens.named(state.query) if query is None else shown.query_tokens.named(query)
    line.append(f" · {settled(name)}")
    if query is not None and key is not None:
        weight = float(shown.weights[query, key])
        told = weight_text(weight, 3) if shown.allowed[query, key] else "masked"
        line.append(f" → {settled(shown.key_tokens.named(key))} ").append(told, Style(bold=True))
    line.append(" · ")
    verdict = head.certificate.verdict
    line.append(verdict_words(verdict), FAILED if verdict is Verdict.FAILED else STYLES[verdict])
    return line.append(f" · {model_words(head.provenance)}")


def proof(certificate: Certificate, full: bool = False) -> Text | None:
    """What the verdict rests on: of a certified head only where it is asked for; a failure fills its line."""
    if certificate.verdict is Verdict.CERTIFIED and not full:
        return None
    line = certificate_line(certificate, full)
    if certificate.verdict is Verdict.FAILED:
        return Text(f" {line.plain} · do not trust these numbers ", FAILED)
    return line
