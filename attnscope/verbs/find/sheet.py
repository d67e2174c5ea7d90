"""Sheet of `find`: heads ranked by the evidence for them, each beside its controls."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from attnscope.errors import InputError, listed
from attnscope.printable import word
from attnscope.render.kit.command import asking, finding, label, looked_at, opening_head
from attnscope.render.kit.numbers import alike, cell, counted, signed, signed_cell, weight, weight_cell
from attnscope.render.script import Told, of_run
from attnscope.render.sheet.blocks import Heap, Ranking
from attnscope.render.sheet.heads import Companion, HeadGrid, each_of
from attnscope.render.sheet.said import (
    Place,
    at,
    departures,
    grid_size,
    in_sentence,
    limits,
    name,
    named,
    patch_words,
    proof,
    read,
    setting,
    span_notes,
)
from attnscope.render.sheet.sheet import Next, Sheet, by_head, saying
from attnscope.render.sheet.table import Column, Mark, Scale, Table, Tint, Values, only
from attnscope.render.sheets import WHOLE, Focus
from attnscope.render.words import Said
from attnscope.results import Contents, Kind, Special
from attnscope.results.claims.ranking import LEAST_CONTROLS, LEVEL, SINK, STEADIEST, DependsOn, Group, much
from attnscope.tokens import Patches, Tokens
from attnscope.verbs.find.result import Case, Finding

_NAMED = 6  # most heads listed by name
_CONTROLS_TOLD = 3  # controls printed with -v; JSON has all


def sheet(result: Finding, focus: Focus = WHOLE) -> Sheet:
    best, drawn = result.ranking[0] if result.ranking else None, result.controls
    say = said(result)
    best_first = ranking(result, focus.verbose)
    measured, change = (
        "divergence" if result.smaller_is_better else "weight",
        Scale.around(result.above_control),
    )
    beside = Companion.numbers("mean of its controls", result.controls.mean, weight_cell)
    sought, changed = result.question, departures(result.by, result.special)
    (query, key), size = sides(result), grid_size(result.layers, result.heads)
    if result.apart:
        size = ", ".join(name(*each) for each in result.apart[:_NAMED]) + ", ..." * (
            len(result.apart) > _NAMED
        )
    pieces = " by tokens" if changed or sought.query_span or sought.key_span else ""
    grids = (
        _grid(result, "above the mean of its controls", result.above_control, change),
        _grid(result, measured, result.weights, scale_of(result), beside),
    )
    return saying(
        say,
        setting=setting(result, size),
        blocks=(best_first, *(grids if focus.verbose else ())),
        table=lambda: table_of(result, result.ranking, True),
        texts=read(result.kind, result.query_tokens, result.key_tokens),
        notes=(
            *span_notes(query, sought.query_span, key, sought.key_span),
            *say.lines("notes"),
            *limits(result),
        ),
        legend=(*patch_words(result.query_tokens, result.key_tokens), *say.lines("legend")),
        details=(
            *(f"control {i}: {text}" for i, text in enumerate(result.control_texts[:_CONTROLS_TOLD])),
            *say.lines("details"),
        ),
        departs=(
            *changed,
            *((f"{drawn.count} of {drawn.wanted} controls",) if drawn.count != drawn.wanted else ()),
            *((f"seed {drawn.seed}",) if drawn.seed else ()),
        ),
        proof=proof(
            result.every_verdict, "head", pieces, "the rows asked about in " if result.by_rows else ""
        ),
        verdicts=by_head(result.layers, result.heads, result.verdicts),
        main=best_first,
        summary=(counted(len(result.places), "head"), f"best {named(result, best)}" if best else ""),
        record=(("kind", result.kind.value), ("tower", result.tower)),
        next=_next(result, say),
        more=(*_heap(result), *(() if focus.verbose else grids)),
        opens=_opens(result, best or (0, 0)),
    )


def _grid(
    result: Finding, title: str, values: np.ndarray, scale: Scale, control: Companion | None = None
) -> HeadGrid:
    form = alike(values, 2, signed_cell if scale.kind == "signed" else weight_cell)
    unit = "nats" if result.smaller_is_better else ""
    return HeadGrid(title, result.layers, result.heads, values, scale, form, unit, companion=control)


def _next(result: Finding, say: Said) -> Next | None:
    sought = result.question
    if not result.ranking:
        return None
    i, j = result.ranking[0]
    looking = looked_at(result.by, result.special)
    crosses = result.kind is Kind.CROSS and result.query_tokens.texts
    if sought.query is None or sought.key is None:
        i, j = first_named(result) or (i, j)
        opened = opening_head(result, result.layers[i], result.heads[j])
        return Next(say("look_of_that_head"), f"{opened}{looking}")
    if crosses and sought.query > 0:
        before = finding(result, sought.query - 1, sought.key)
        return Next(say("row_before"), f"{before}{looking}")
    if result.case not in (Case.ONE, Case.SEVERAL):
        query = label(result.query_tokens, sought.query)
        if result.by_rows:
            opened = opening_head(result, result.layers[i], result.heads[j], sought.query)
            return Next(say("first_of_these"), f"{opened}{looking}")
        return Next(say("heads_from_there"), f"{asking(result, 'heads', '--query', query)}{looking}")
    asks = result.query_tokens.items[sought.query].name
    if "mask" in asks.casefold() and not asks.isalpha() and not looking:
        link = f"{result.query_tokens.labels[sought.query]}->{result.key_tokens.labels[sought.key]}"
        cut = asking(result, "ablate", "--layer", str(result.layers[i]), "--link", word(link))
        return Next(say("needed"), cut)
    over = not result.query_tokens.texts and result.key_tokens.stretches  # where every key is shown
    opened = opening_head(result, result.layers[i], result.heads[j], sought.query if over else None)
    return Next(say("whole_head"), f"{opened}{looking}")


def _opens(result: Finding, best: Place) -> dict[str, object]:
    found = result.question
    pair = {"query": found.query, "key": found.key}
    if found.query_span or found.key_span:
        sides = (result.query_tokens, found.query), (result.key_tokens, found.key)
        places = [tokens.positions[place] for tokens, place in sides if place is not None]
        pair = dict(zip(pair, places, strict=True)) if result.special is Special.SHOW else {}
    return {
        "layer": result.layers[best[0]],
        "head": result.heads[best[1]],
        **pair,
        "words": result.by.joins,
        "special": result.special,
    }


# most heads shown of each group; the rest is counted
_SHOWN = {Group.STANDS_OUT: 8, Group.ABOVE_ITS_OWN: 4, Group.POSITION: 3, Group.KEY: 3, Group.NEITHER: 0}
_FEW = 5  # heads shown where none stands out or is above its controls
_HEADINGS = {Group.STANDS_OUT: "stands_out", Group.ABOVE_ITS_OWN: "above_its_own", Group.POSITION: "position"}
_HEADINGS |= {Group.KEY: "key_of_all", Group.NEITHER: "neither"}  # headings of the groups
_BARS: dict[DependsOn | None, Tint] = {
    DependsOn.CONTEXT: "own",
    DependsOn.WORD: "kin",
    DependsOn.POSITION: "faint",
    DependsOn.KEY: "peers",
    None: "floor",
}


def ranking(result: Finding, whole: bool) -> Ranking:
    """Bar ranking of heads by evidence group, coloured by what each head depends on."""
    say, shown = said(result), {group: result.evidence.of_group(group) for group in result.evidence.groups}
    if not whole:
        few = not shown[Group.STANDS_OUT] and not shown[Group.ABOVE_ITS_OWN]
        most = _SHOWN | ({Group.NEITHER: _FEW} if few else {})
        more = result.by_weight[:_ALSO] if result.case is Case.POSITION_SOUGHT else ()
        told = {first_named(result), _drawn(result), *more}  # heads named in the answer
        shown = {
            group: tuple(each for i, each in enumerate(places) if i < most[group] or each in told)
            for group, places in shown.items()
        }
    places = [place for there in shown.values() for place in there]
    sections, begins = [], 0
    for group, there in shown.items():
        if there:
            every = len(result.evidence.of_group(group))
            sections.append((begins, say(_HEADINGS[group], len(there), every)))
            begins += len(there)
    table = table_of(result, places, whole)
    listed = len(shown.get(Group.NEITHER, ()))
    hidden = len(result.evidence.of_group(Group.NEITHER)) - listed
    ends = table["control_low"].values, table["control_high"].values
    return Ranking(
        title="",
        of="head",
        names=tuple(named(result, place) for place in places),
        table=table,
        sections=tuple(sections),
        measured="divergence in nats" if result.smaller_is_better else "weight",
        marks=(
            *_bars(result, say, places, table["weight"].values),
            Mark("span", "control", "", *ends),
            Mark("ring", "control", say("its_controls"), table["control_mean"].values),
        ),
        axis=(0.0, 1.02) if scale_of(result).high == 1.0 and not result.smaller_is_better else None,
        unshown=say("hidden", hidden, listed) if hidden else "",
        hidden=len(result.ranking) - len(places),
    )


def _bars(result: Finding, say: Said, places: Sequence[Place], values: Sequence[float]) -> list[Mark]:
    of, accounts = result.controls.of, [result.evidence.depends_on(place) for place in places]
    if result.smaller_is_better:
        return [Mark("bar", "own", f"this {of.value}", values)]
    return [
        Mark("bar", tint, say("bar", account), only(values, (each is account for each in accounts)))
        for account, tint in _BARS.items()
        if account in accounts
    ]


def table_of(result: Finding, places: Sequence[Place], whole: bool) -> Table:
    """Table with a row for each of these heads; `whole` shows all columns on screen, else few."""
    controls = result.controls

    def of_each(values: np.ndarray | None) -> Values:
        return [None] * len(places) if values is None else each_of(values, places)

    def more(heading: str) -> str:
        return heading if whole else ""

    low, high = of_each(controls.low), of_each(controls.high)
    between = [f"{weight(a)} - {weight(b)}" for a, b in zip(low, high, strict=True)]
    single, under = result.question.pattern is None, f"in {control_texts(result, controls.count)}"
    measured = "apart" if result.smaller_is_better else "weight"
    rank = f"{'of that key' if single else 'of the strongest such key, mean,'} in its row"
    moved = "what all pieces move together" if result.by.joins else "what is moved"
    goes = "is nearer than" if result.smaller_is_better else "goes beyond"
    apart = partial(signed, decimals=1)
    others = said(result)("others")
    depends = f"what becomes of the weight when the {PLURAL[controls.of]} are shuffled"
    called = {DependsOn.POSITION: "place", DependsOn.KEY: "key", DependsOn.WORD: controls.of.part, None: ""}
    called[DependsOn.CONTEXT] = context_words(controls.of)
    key = sides(result)[1]
    follows = f"what the query gives to {key} wherever it was moved" if key else ""
    # fmt: off
    return Table(
        Column("layer", [result.layers[i] for i, _ in places]),
        Column("head", [result.heads[j] for _, j in places]),
        Column("weight", of_each(result.weights), measured, partial(weight, decimals=3 if whole else 2),
               scale=scale_of(result)),
        Column("rank", of_each(result.ranks), more("rank"), f"{{:.{0 if single else 1}f}}".format, rank,
               spared=2),
        Column("norm", of_each(result.norms)),
        Column("norm_share", of_each(result.shares), more("share of output"), weight,
               f"share of its row by weight x ||f(x)||, {moved} (Kobayashi et al. 2020)", spared=3),
        Column("even_attention", of_each(result.even_attention), more("if all the same"), weight,
               "what each would get if all got the same", spared=4),
        Column("control_mean", of_each(controls.mean), "mean", weight,
               f"mean of the {control_texts(result)}", under=under),
        Column("control_low", low, "90 % between", says="the middle nine tenths of them", told=between,
               under=under),
        Column("control_high", high),
        Column("control_spread", of_each(controls.spread)),
        Column("below", of_each(controls.below), "below", "{:.0f}".format,
               f"how many of them the {controls.of.value} {goes}", under=under),
        Column("above_control", of_each(result.above_control), more("above mean"), signed,
               "weight less that mean", Scale.around(result.above_control)),
        Column("excess", of_each(result.evidence.excess), more("excess"), apart,
               f"the same in its own spread over them, at least {weight(STEADIEST)} (Westfall "
               "and Young 1993)"),
        Column("elsewhere", of_each(result.elsewhere), more("from elsewhere"), weight,
               f"what {others} of the {controls.of.value} give to it, mean", spared=6),
        Column("followed", of_each(result.followed), more("goes with the word"), weight, follows,
               spared=5),
        Column("depends_on", [called[result.evidence.depends_on(place)] for place in places], "depends on",
               says=depends),
        Column("stands_out", [int(result.stands_out(place)) for place in places]),
        Column("verdict", [result.verdicts[i][j].value for i, j in places]),
)
    # fmt: on


def scale_of(result: Finding) -> Scale:
    """Colour scale of scores: 0 to 1, or to the largest where all are small; the best score is dark."""
    largest = float(np.nanmax(result.weights, initial=0.0))
    if result.smaller_is_better:
        return Scale(0.0, largest or 1.0, "falling", ("nearest", ""))
    return Scale(0.0, 1.0 if largest > 0.4 else largest or 1.0)


def _heap(result: Finding) -> Iterator[Heap]:
    """Dot plot of the best excess in each control text, with the best head of the real text marked.

    In units of each head's spread (Westfall and Young 1993); nothing without a ranking or controls.
    """
    best = result.controls.best_excess
    best = np.maximum(best[np.isfinite(best)], 0.0)
    if not result.ranking or not len(best):
        return
    first = result.ranking[0]
    own = max(float(result.evidence.excess[first]), 0.0)
    beyond = int((best >= own).sum())
    say = said(result)
    yield Heap(
        title=say("heap_title", named(result, first), beyond, len(best)),
        dots=say("heap_dots"),
        values=tuple(best.tolist()),
        name=named(result, first),
        own=own,
        measured=say("heap_measured"),
        form=lambda value: cell(value, 1),
    )


def figures(result: Finding) -> Told:
    """Data for the script that recomputes the scores; `InputError` where no script can."""
    controls = result.controls
    if result.by.is_long:
        raise InputError(f"no script: its rows are {result.by.several}, and a script reads tokens or words")
    if result.by.joins and result.special is not Special.SHOW:
        raise InputError("no script: its tokens are joined to words, and special ones left out")
    told = of_run(result.provenance, result.query_tokens, result.kind, result.tower)
    sides = (result.query_tokens, result.key_tokens)
    queries, keys = (_pieces(tokens, result, told["inputs"]) for tokens in sides)
    places = [(result.layers[i], result.heads[j], i, j) for i, j in result.ranking]
    return told | {
        "queries": queries,
        "keys": keys,
        "renormalised": result.special is Special.RENORMALISE,
        "links": result.links.tolist(),
        "like": result.question.like,
        "smaller is better": result.smaller_is_better,
        "controls": controls.ids.tolist(),
        "exchanged": controls.input,
        "heads": [
            (layer, head, *(float(each[i, j]) for each in (result.weights, controls.mean, controls.below)))
            for layer, head, i, j in places
        ],
    }


def _pieces(tokens: Tokens, result: Finding, inputs: dict[str, tuple[int, ...]]) -> list[list[int]]:
    starts, asked = list(tokens.positions), result.question
    if not result.by.joins:
        sides = {"queries": asked.query_span, "keys": asked.key_span}
        if result.kind is Kind.CROSS:
            del sides["keys" if tokens is result.query_tokens else "queries"]
        named = {span[0]: list(span) for span in sides.values() if span}
        return [named.get(start, [start]) for start in starts]
    own = tokens is result.query_tokens and result.kind is not Kind.ENCODER
    read = inputs.get("decoder_input_ids" if own else "input_ids", inputs["input_ids"])
    return [list(range(*ends)) for ends in pairwise([*starts, len(read)])]


PLURAL = {Contents.TEXT: "words", Contents.PICTURE: "patches", Contents.SOUND: "frames"}
_MOST_APART = float(np.log(2))  # nats
_ALSO = 3  # most heads named among those that position explains


def said(result: Finding) -> Said:
    """Sentences of `find` about this result, and the facts they use."""
    sought, controls, evidence = result.question, result.controls, result.evidence
    best, drawn = first_named(result), _drawn(result)
    sensed = result.query_tokens.stretches and not result.query_tokens.texts
    out = evidence.of_group(Group.STANDS_OUT)
    query, key = sides(result)
    tokens = result.key_tokens
    plain = bool(tokens.texts) or not tokens.stretches
    lucky = LEVEL * len(result.places)
    how, _, stays = controls.how.partition("; ")
    long = np.flatnonzero(result.key_lengths >= SINK) if result.key_lengths is not None else np.array([], int)
    even = result.even_attention
    evens = None if even is None or np.isnan(even).all() else even
    low, middle, high = np.quantile(controls.best, (0.05, 0.5, 0.95)) if controls.count else (None,) * 3
    also = [
        f"{named(result, place)} ({weight(float(result.weights[place]))} here, "
        f"{weight(float(controls.mean[place]))} then)"
        for place in result.by_weight[1:_ALSO]
        if evidence.depends_on(place) is DependsOn.POSITION
    ]

    def of_best(values: np.ndarray | None) -> float | None:
        return None if values is None or best is None else float(values[best])

    facts = {
        # the target
        "query": query,
        "key": key,
        "from": "" if sought.query is None else at(result.query_tokens, sought.query, sought.query_span),
        "to": "" if sought.key is None else at(tokens, sought.key, sought.key_span),
        "pattern": sought.pattern and sought.pattern.value,
        "like": sought.like and name(*sought.like),
        "pair": sought.query is not None,
        "two": not (sought.query_span or sought.key_span or result.by.is_long),
        "joined": result.by.is_long,
        "asked": len(result.places),
        "decoder": result.kind is Kind.CROSS and bool(result.query_tokens.texts),
        # the input
        "text": plain,
        "patches": not tokens.texts and any(isinstance(each, Patches) for each in tokens.stretches),
        "unit": result.by.value if plain else controls.of.part,
        "asking": PLURAL[controls.of] if sensed else f"{result.by.value}s",
        "special_key": sought.key is not None and tokens.items[sought.key].special,
        "sink": None if result.key_lengths is None or not long.size else float(result.key_lengths.max()),
        "sink_layers": listed([result.layers[i] for i in long]) if long.size else "",
        "sink_layer_count": len(long),
        # the controls
        "of": controls.of.value,
        "part": controls.of.part,
        "parts": PLURAL[controls.of],
        "context": context_words(controls.of),
        "controls": controls.count,
        "fewer": LEAST_CONTROLS <= controls.count < controls.wanted,
        "least": LEAST_CONTROLS,
        "too_few": evidence.few,
        "allowed": int(LEVEL * (controls.count + 1) + 1e-9) - 1,
        "lucky": "1" if lucky <= 1 else f"{int(lucky)}-{int(lucky) + 1}",
        "how": how,
        "stays": stays,
        "best_low": low,
        "best_middle": middle,
        "best_high": high,
        # the outcome
        "best": None if best is None else named(result, best),
        "own": of_best(result.weights),
        "mean": of_best(controls.mean),
        "stayed": of_best(controls.mean if sought.query is None else evidence.of_place),
        "elsewhere": of_best(result.elsewhere),
        "even": of_best(even),
        "even_least": None if evens is None else float(np.nanmin(evens)),
        "even_most": None if evens is None else float(np.nanmax(evens)),
        "reached": 0 if best is None else evidence.as_far(best),
        "out": len(out),
        "also": also,
        "drawn": None if drawn is None else named(result, drawn),
        "followed": None if drawn is None or result.followed is None else float(result.followed[drawn]),
        "can_follow": result.followed is not None,
        "explained": any(evidence.depends_on(place) for place in result.ranking),
        "most_apart": _MOST_APART,
    }
    return Said("find", result, facts)


def sides(result: Finding) -> tuple[str, str]:
    """Names of the query and the key token, with a position where the name occurs several times."""
    sought = result.question
    pairs = ((result.query_tokens, sought.query), (result.key_tokens, sought.key))
    query, key = ("" if at is None else in_sentence(tokens, at) for tokens, at in pairs)
    return query, key


def first_named(result: Finding) -> Place | None:
    """The head that the answer sentence names, not always the first of the table."""
    if not result.ranking:
        return None
    if result.case in (Case.NOTHING, Case.POSITION_SOUGHT, Case.POSITION_LOST):
        return result.by_weight[0]
    if result.case is Case.POSITION_ONLY:
        return result.evidence.of_group(Group.POSITION)[0]
    if result.case is Case.KEY_ONLY:
        return result.evidence.of_group(Group.KEY)[0]
    return _nearest(result) if result.case is Case.CANNOT_TELL else result.ranking[0]


def _nearest(result: Finding) -> Place:
    """The unexplained head with the largest excess; for likeness the head with the least divergence."""
    if result.smaller_is_better:
        return min(result.ranking, key=lambda place: float(result.weights[place]))
    explained = {place for of in (Group.POSITION, Group.KEY) for place in result.evidence.of_group(of)}
    others = [place for place in result.ranking if place not in explained] or list(result.ranking)
    return max(others, key=lambda place: float(result.evidence.excess[place]))


def _drawn(result: Finding) -> Place | None:
    """The head that the answer describes as following the key's word, or None."""
    by_word = [each for each in result.ranking if result.evidence.depends_on(each) is DependsOn.WORD]
    if result.case in (Case.ONE, Case.SEVERAL):
        return result.ranking[0] if result.ranking[0] in by_word else None
    given, even = result.followed, result.even_attention
    if result.case is not Case.CANNOT_TELL or given is None or even is None:
        return None
    drawn = (each for each in by_word if given[each] >= much(float(even[each])))
    return max(drawn, key=lambda each: float(given[each]), default=None)


def context_words(of: Contents) -> str:
    """Word for dependence on context: `context` in a text, else the picture or the sound."""
    return "context" if of is Contents.TEXT else of.value


def control_texts(result: Finding, count: int | None = None) -> str:
    """Names the controls: `shuffled texts`, `100 shuffled pictures`."""
    of = f"shuffled {result.controls.of.value}"
    return f"{of}s" if count is None else counted(count, of)
