"""From one token back to the input: what each method gives to every token, beside what replacing it does."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from attnscope.render.focus import WHOLE, Focus
from attnscope.render.kit.numbers import counted, largest_magnitude, weight_text
from attnscope.render.kit.scale import Scale as Weights
from attnscope.render.kit.words.certificate import GLYPHS
from attnscope.render.kit.words.header import model_words
from attnscope.render.sheet.blocks import Beside, Column, Mark, Matrix, Names, Ranking, Table, only
from attnscope.render.sheet.said import at, attention, numbered, proof, signed, text, weight
from attnscope.render.sheet.scale import Scale
from attnscope.render.sheet.sheet import Sheet
from attnscope.results import Flow, Verdict
from attnscope.results.claims.flow import Ablated, Trust
from attnscope.tokens import Patches, printable
from attnscope.vocabulary import Scaling

NEARNESS = "nearness"
_MOST, _LISTED, _PATCHES = 64, 40, 12  # tokens that all have a row; of more, and of a picture, so many
_FACTS = "fact layer position token value"
_FLAT = 0.005  # effects below it would all be the same two digits
_FEW = 10  # tokens, of which a rank correlation says little


def sheet(found: Flow, focus: Focus = WHOLE) -> Sheet:
    patches, tokens = patches_of(found), _tokens(found)
    maps = () if patches is None else (Beside(tuple(_maps(found, patches))),)
    agreement = () if found.ablated is None else (_agreement(found.ablated.trust),)
    asked = at(found.tokens, found.query)
    return Sheet(
        title=f"what reaches {asked} from the input through {counted(len(found.layers), 'layer')}",
        setting=f"{attention(found.kind, found.tower)}, mean of {counted(len(found.heads), 'head')} · "
        f"{model_words(found.provenance)}",
        origins=(found.provenance,),
        answer=_answer(found),
        blocks=(Beside((tokens, *agreement)), *maps),
        table=lambda: Table.of(_FACTS, _facts(found)),
        texts=text(found.tokens),
        notes=tuple(_notes(found)),
        proof=tuple(_proof(found)),
        main=tokens,
    )


def patches_of(found: Flow) -> Patches | None:
    """The picture whose patches the tokens are; None where they are none, or only some of a text."""
    stretch = next(iter(found.tokens.stretches), None)
    if not isinstance(stretch, Patches) or len(found.tokens.stretches) > 1:
        return None
    return None if found.tokens.texts else stretch


def _shown(found: Flow) -> list[int]:
    """All tokens, or of many those that most reaches the query from, in their order."""
    count = len(found.tokens)
    listed = _LISTED if patches_of(found) is None else _PATCHES
    if count <= (_MOST if patches_of(found) is None else _PATCHES):
        return list(range(count))
    order = np.argsort(-found.rollout[-1], kind="stable")[:listed]
    return sorted({*map(int, order), found.query})


def _tokens(found: Flow) -> Ranking:
    """A row a token: its share by each method, and as a bar what replacing it does."""
    shown = _shown(found)
    shares = {name: _seen(found, values, shown) for name, values in found.methods.items()}
    largest = max(float(np.nanmax(values)) for values in found.methods.values())
    says = _methods(found)
    columns = [
        Column(name.replace(" ", "_"), values, name, weight, says[name], Scale(0.0, largest or 1.0))
        for name, values in shares.items()
    ]
    marks: tuple[Mark, ...] = ()
    if found.ablated is not None:
        effects = [float(found.ablated.effects[key]) for key in shown]
        form, around = partial(_effect_text, found.ablated), Scale.around(found.ablated.effects)
        columns.append(Column("effect", effects, "effect", form, _effect(found, found.ablated), around))
        loses = Mark("bar", "own", "", only(effects, [each >= 0 for each in effects]))
        gains = Mark("bar", "loses", "", only(effects, [each < 0 for each in effects]))
        marks = (loses, gains) if any(each < 0 for each in effects) else (loses,)
    return Ranking(
        title=f"what reaches it from each {_unit(found)}"
        + (", and what replacing that does" if marks else ""),
        of=_unit(found),
        names=numbered(found.tokens, shown),
        table=Table(*columns),
        measured="effect of replacing it, " + ("nats" if _answers(found) else "1 less cosine"),
        marks=marks,
        written="effect" if marks else "",
        cells=tuple(name.replace(" ", "_") for name in shares),
        chosen=frozenset({shown.index(found.query)}),
        hidden=len(found.tokens) - len(shown),
    )


def _seen(found: Flow, values: Float[np.ndarray, " key"], shown: Sequence[int]) -> list[float]:
    """The shares of some tokens; none where the query cannot see them."""
    return [float(values[key]) if found.reached[key] else math.nan for key in shown]


def _answers(found: Flow) -> bool:
    return found.ablated is not None and bool(found.ablated.answer)


def _effect_text(ablated: Ablated, value: float) -> str:
    """What replacing does: nats that the answer loses, or one less a cosine."""
    if value and abs(value) < _FLAT:
        text = f"{value:{'+' if ablated.answer else ''}.0e}".replace("e-0", "e-")
        return text.replace("-", "−", 1) if value < 0 else text
    return signed(value) if ablated.answer else weight_text(value)


def _methods(found: Flow) -> dict[str, str]:
    """What each method is."""
    return {
        "attention": f"of L{found.layers[-1]} alone",
        "rollout": "weights multiplied through the layers, each half its input (Abnar and Zuidema 2020)",
        "by norm": "the same of ||sum of a f(x)|| (Kobayashi et al. 2020)",
        "flow": "share of the largest flow to each token, the same weights as capacities",
        "zeroing": "how far a layer turns a token's vector without the values of another, as shares, "
        "multiplied through the layers (Mohebbi et al. 2023)",
    }


def _effect(found: Flow, ablated: Ablated) -> str:
    """What the effects are."""
    by = f"replaced by {printable(ablated.replacement)}"
    if ablated.replacement == "nothing":
        by = "embedded as zeros"
    what = f"a {_unit(found)} is"
    if ablated.together > 1:
        what = f"up to {ablated.together} {_several(found)} side by side are at once"
    if ablated.answer:
        chance = weight_text(ablated.probability, 3)
        return (
            f"nats that “{printable(ablated.answer)}” ({chance}), the model's answer here, loses in log "
            f"probability where {what} {by}"
        )
    return (
        "the model answers nothing here; 1 less the cosine of the query's last vector before and after, "
        f"where {what} {by}"
    )


def _maps(found: Flow, patches: Patches) -> Iterator[Matrix]:
    """Each method as a map of the picture, and the effects; on the scale of all patches but the query's."""
    for name, values in found.methods.items():
        values = np.where(found.reached, values, np.nan)
        others = values.copy()
        others[found.query] = np.nan
        yield _map(found, patches, name, values, largest_magnitude(_laid_out(patches, others)))
    if found.ablated is not None:
        unit = "nats" if found.ablated.answer else "1 less cosine"
        effects = found.ablated.effects
        yield _map(found, patches, f"effect, {unit}", effects, largest_magnitude(effects))


def _map(
    found: Flow, patches: Patches, title: str, values: Float[np.ndarray, " key"], largest: float
) -> Matrix:
    shown, largest = _laid_out(patches, values), largest or 1.0
    falls = bool(np.nanmin(shown, initial=0.0) < 0)
    own = [divmod(i, patches.columns) for i, place in enumerate(patches.positions) if place == found.query]
    return Matrix(
        title=title,
        words=("row", "column"),
        rows=Names(("",) * patches.rows, tuple(range(patches.rows))),
        columns=Names(("",) * patches.columns, tuple(range(patches.columns))),
        values=shown,
        scale=Scale.around(shown) if falls else Weights(Scaling.MAX, np.full(patches.rows, largest)),
        form=signed if falls else weight,
        says=f"{'around 0 to ±' if falls else 'to '}{largest:.2g}",
        unanswered="",
        marked=tuple(own),
    )


def _laid_out(patches: Patches, values: Float[np.ndarray, " key"]) -> Float[np.ndarray, "row column"]:
    """Values by position as those of the patches, row by row; NaN for a patch that has no position."""
    flat = [values[place] if place >= 0 else np.nan for place in patches.positions]
    return np.array(flat, dtype=np.float64).reshape(patches.rows, patches.columns)


def _agreement(trust: tuple[Trust, ...]) -> Ranking:
    """How far each method agrees with the effects, beside effects that are shuffled."""
    correlations = [each.correlation for each in trust]
    near = [each.method == NEARNESS for each in trust]
    low, high = [each.low for each in trust], [each.high for each in trust]
    shuffled = [
        "" if math.isnan(each.low) else f"{signed(each.low)} to {signed(each.high)}" for each in trust
    ]
    return Ranking(
        title="agreement of each method with the effects",
        of="method",
        names=tuple(each.method for each in trust),
        table=Table(
            Column("correlation", correlations, "spearman", signed, scale=Scale(-1.0, 1.0, "signed")),
            Column("shuffled", shuffled, "shuffled"),
            Column("beats", [each.beats for each in trust], "beats", "{:.0f} %".format),
        ),
        measured="rank correlation with the size of the effect",
        marks=(
            Mark("bar", "own", "of the effects", only(correlations, [not each for each in near])),
            Mark("bar", "faint", "", only(correlations, near)),
            Mark("span", "control", "of shuffled effects", low, high),
        ),
        axis=(-1.0, 1.0),
        faint=frozenset(i for i, each in enumerate(near) if each),
        says="nearness knows no attention",
    )


def _unit(found: Flow) -> str:
    """What a position stands for."""
    stretch = next(iter(found.tokens.stretches), None)
    return "token" if stretch is None else "patch" if isinstance(stretch, Patches) else "frame"


def _several(found: Flow) -> str:
    return f"{_unit(found)}{'es' if _unit(found) == 'patch' else 's'}"


def _replaced(found: Flow, ablated: Ablated) -> str:
    """`8 tokens`, `49 groups of patches`."""
    if ablated.together > 1:
        return f"{counted(ablated.count, 'group')} of {_several(found)}"
    return f"{ablated.count} {_unit(found) if ablated.count == 1 else _several(found)}"


def _answer(found: Flow) -> str:
    """Whether any method says more of the effects than nearness does, which knows no attention."""
    ablated = found.ablated
    if ablated is None:
        return f"Nothing was replaced: {found.reason}. So nothing says how far these shares can be trusted."
    known = [each for each in ablated.trust if not math.isnan(each.correlation)]
    near = next((each for each in known if each.method == NEARNESS), None)
    others = [each for each in known if each.method != NEARNESS]
    if not others:
        return "There are too few tokens for a rank correlation with what replacing them does."
    best = max(others, key=lambda each: each.correlation)
    told = (
        f"Of {counted(len(others), 'method')} {best.method} agrees best with what replacing does "
        f"({signed(best.correlation)})"
    )
    if near is not None:
        told += f"; nearness alone, which knows no attention, comes to {signed(near.correlation)}"
    if best.correlation <= best.high:
        told += "; shuffled effects come as far, so this text does not tell"
    elif near is not None and best.correlation <= near.correlation:
        told += ": these say no more of what matters than nearness does"
    elif ablated.count < _FEW:
        told += f", over {_replaced(found, ablated)}, which is few"
    return f"{told}."


def _notes(found: Flow) -> Iterator[str]:
    yield from found.notes
    yield _beside_the_map(found)
    if found.ablated is not None:
        yield (
            f"rank correlation with the size of the effect, over {_replaced(found, found.ablated)}; "
            f"shuffled: the middle nine tenths of {found.ablated.shuffles} shuffles (seed "
            f"{found.ablated.seed}), and how many of them it beats"
        )
    if found.flow is None:
        yield f"no flow: there are more than {found.most} {_several(found)}"
    if found.zeroed is None and found.no_zeroing:
        yield f"no value zeroing: {found.no_zeroing}"


def _beside_the_map(found: Flow) -> str:
    """What a map of patches leaves out: the shares of the query itself and of positions that are no patch."""
    if patches_of(found) is None:
        return ""
    patched = {place for stretch in found.tokens.stretches for place in stretch.positions}
    beside = [place for place in range(len(found.tokens)) if place not in patched or place == found.query]
    told = [
        f"{at(found.tokens, place)} "
        + ", ".join(f"{name} {weight(float(each[place]))}" for name, each in found.methods.items())
        for place in beside[:4]
    ]
    return f"each map on its own scale, the query framed and not in it; shares of {'; '.join(told)}"


def _proof(found: Flow) -> Iterator[tuple[Verdict, str]]:
    """How many heads have each verdict, and whether zeroed values were seen to be zero."""
    yield from proof(found.certified, "head")
    if (done := found.zeroing) is None:
        return
    count = done.read_back + done.lost + done.unseen
    told = f"in {count} of {count} runs read back as the output less weight times value"
    if done.lost:
        told = f"in {done.lost} of {count} runs the next operation got something else"
    elif done.unseen:
        told = f"in {done.unseen} of {count} runs they cannot be read back: other operations come between"
    elif not done.faithful:
        told = "watching alone changed what a layer returns"
    yield done.verdict, f"{GLYPHS[done.verdict]} zeroed values: {told}"


def _facts(found: Flow) -> Iterator[tuple[object, ...]]:
    """A fact a row, layers by number where they have one."""
    by_layer = ("attention", found.raw), ("rollout", found.rollout), ("by norm", found.by_norm)
    labels = found.tokens.labels
    for name, values in (*by_layer, ("zeroing", found.zeroed)):
        for layer, row in zip(found.layers, () if values is None else values, strict=values is not None):
            for key, value in enumerate(row):
                yield name, layer, key, labels[key], float(value)
    for key, value in enumerate(() if found.flow is None else found.flow):
        yield "flow", found.layers[-1], key, labels[key], float(value)
    if found.ablated is None:
        return
    for key, value in enumerate(found.ablated.effects):
        if not np.isnan(value):
            yield "effect", "", key, labels[key], float(value)
    for each in found.ablated.trust:
        for name in ("correlation", "low", "high", "beats"):
            yield f"{name} of {each.method}", "", "", "", float(getattr(each, name))
