"""What stands above every result: which model, which head, how it was read, and the text it was given."""

from rich.console import Group, RenderableType
from rich.text import Text

from attnscope.render.numbers import counted
from attnscope.results import HeadAttention, Kind, Overview, Projection, Provenance, Verification
from attnscope.tokens import Tokens, printable

_ATTENTION = {
    Kind.ENCODER: "encoder self-attention",
    Kind.DECODER: "decoder self-attention",
    Kind.CROSS: "cross-attention, decoder to encoder",
}
CROSS_ROWS = "a row is the token that the decoder reads, and decides on the next one"


def header(result: HeadAttention | Overview | Verification | Projection) -> RenderableType:
    """Two to five lines: what is shown and of which model, how it was read, what is special, the text.

    A map is introduced by its head.
    """
    result = result.head if isinstance(result, Projection) else result
    lines = [_subject(result), reading(result.provenance)]
    if isinstance(result, HeadAttention) and (features := feature_words(result)):
        lines.append(Text(" · ".join(features)))
    tokens = result.tokens if isinstance(result, Verification) else result.query_tokens
    if tokens.texts:  # a picture or a sound has none
        lines.append(_sentence(result))
    if isinstance(result, Overview) and (told := written_words(tokens)):
        lines.append(Text(told))
    return Group(*lines)


def model_words(provenance: Provenance) -> str:
    """The model's name, a long path by its end; a demo model and a replaced one are called so."""
    parts = printable(provenance.model).split("/")
    name = "/".join(parts if len(parts) <= 2 else ["…", *parts[-2:]])
    if provenance.demo:
        name = f"bundled {name} model"
    if provenance.requested != provenance.model:
        name += f", asked for {printable(provenance.requested)}"
    return name


def attention_words(kind: Kind) -> str:
    return _ATTENTION[kind]


def _subject(result: HeadAttention | Overview | Verification) -> Text:
    model = model_words(result.provenance)
    if isinstance(result, HeadAttention):
        return Text.assemble((result.name, "bold"), f" {_ATTENTION[result.kind]} · {model}")
    if isinstance(result, Overview):
        heads = f"{counted(len(result.layers), 'layer')} x {counted(len(result.heads), 'head')}"
        return Text.assemble((heads, "bold"), f" {_ATTENTION[result.kind]} · {model}")
    heads = counted(sum(len(layer.certificates) for layer in result.layers), "head")
    return Text.assemble((f"verification of {heads}", "bold"), f" · {model}")


def reading(provenance: Provenance) -> Text:
    """What pins the weights down, and on what and by which way they were run."""
    source = f"revision {provenance.source}" if provenance.revision else provenance.source
    parts = (source, provenance.device, provenance.dtype, f"kernel {provenance.kernel}", provenance.route)
    return Text(" · ".join(printable(part) for part in parts), style="dim")


def feature_words(result: HeadAttention) -> list[str]:
    """What sets this head apart from plain attention, one phrase each."""
    features = []
    if result.kind is Kind.CROSS:
        features.append(CROSS_ROWS)
    if told := written_words(result.query_tokens):
        features.append(told)
    if result.key_heads < result.heads:
        features.append(_shared_key_head(result))
    if result.window is not None:
        features.append(f"window of {counted(result.window, 'token')}")
    if result.softcap is not None:
        features.append(f"scores capped at ±{result.softcap:g}")
    if result.sink is not None:
        features.append(f"sink {result.sink:.2f}{' on average' if result.sink_by_query else ''}")
    return features


def written_words(tokens: Tokens) -> str:
    """What of the text the model wrote itself, and how; empty where all was given."""
    if not tokens.written:
        return ""
    what = "what follows →" if len(tokens.texts) > 1 else "the decoder's text"
    return f"the model wrote {what} itself, {tokens.written}; its last token was not read and has no row"


def _shared_key_head(result: HeadAttention) -> str:
    group = result.heads // result.key_heads
    first = result.key_head * group
    return f"reads key head {result.key_head} (shared by heads {first}-{first + group - 1})"


def _sentence(result: HeadAttention | Overview | Verification) -> Text:
    """The text in quotation marks, cut at the width of the console; two texts where there are two sides."""
    if isinstance(result, Verification):
        return quoted(result.tokens)
    line = quoted(result.query_tokens)
    if result.kind is Kind.CROSS and result.key_tokens.texts:
        line = Text.assemble("query ", line, "  key ", quoted(result.key_tokens))
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def quoted(tokens: Tokens) -> Text:
    """The source texts in quotation marks, cut at the width of the console; an arrow as in `sentence`."""
    given = tokens.texts[:-1] if tokens.written and len(tokens.texts) > 1 else tokens.texts
    quoted = " | ".join(f"“{printable(text)}”" for text in given)
    if len(given) < len(tokens.texts):
        quoted += f" → “{printable(tokens.texts[-1].strip())}”"
    return Text(quoted, style="italic", no_wrap=True, overflow="ellipsis")
