"""What has to be said beside weights: what their rows sum to, what was joined or left out, special tokens."""

from attnscope.render.kit.labels import settled
from attnscope.render.kit.numbers import cell, counted, weight
from attnscope.results import HeadAttention, HeadView, HeadWeights, Overview, Special, SpecialMass
from attnscope.results.base.groups import Groups
from attnscope.vocabulary import Unit

SPANS = "tokens named together: sum over the keys, mean over the queries"
WITHOUT_SPECIAL = "special tokens left out, rows divided by what remains"
_MOST_NAMES = 4


def joined_words(by: Unit) -> str:
    """What a weight between words, sentences or passages is."""
    if by is Unit.WORD:
        return "words: sum over the pieces of a key, mean over those of a query"
    return f"{by.several}: sum over the tokens of a key, mean over those of a query"


def special_words(mass: SpecialMass | None, of: str = "the attention") -> str:
    """`special tokens get .43 of the attention: [CLS] .03, [SEP] .40`; empty where there are none."""
    if mass is None:
        return ""
    listed = [(settled(name), share) for name, share in mass.by_name.items()]
    if len(listed) == 1:
        return f"special token {listed[0][0]} gets {weight(mass.total)} of {of}"
    if len(listed) > _MOST_NAMES:
        listed = sorted(listed, key=lambda each: -each[1])[:_MOST_NAMES]
    named = ", ".join(f"{name} {weight(share)}" for name, share in listed)
    more = ", ..." if len(listed) < len(mass.by_name) else ""
    return f"special tokens get {weight(mass.total)} of {of}: {named}{more}"


def head_of(result: HeadWeights | HeadView) -> HeadWeights:
    return result.head if isinstance(result, HeadView) else result


def key_groups(result: HeadWeights | HeadView) -> Groups:
    """The positions of the head's keys behind each column."""
    return (
        result.key_groups
        if isinstance(result, HeadView)
        else tuple((i,) for i in range(len(result.key_tokens)))
    )


def divides(result: HeadWeights | HeadView) -> bool:
    """Whether rows are divided by what remains without special tokens."""
    return isinstance(result, HeadView) and result.special is Special.RENORMALISE


def weights_words(result: HeadWeights | HeadView) -> list[str]:
    """All that is to be said of the weights, one phrase each."""
    phrases = [sums_words(result), special_words(head_of(result).special_mass), *view_words(result)]
    return [phrase for phrase in phrases if phrase]


def sums_words(result: HeadWeights | HeadView) -> str:
    """What a row adds up to."""
    head = head_of(result)
    sink = isinstance(head, HeadAttention) and head.sink is not None
    if not isinstance(result, HeadView) or not _leaves_out_keys(result):
        if not isinstance(head, HeadAttention):
            return _measured_sums(head)
        return "rows sum to less than 1: the sink takes the rest" if sink else "rows sum to 1"
    if divides(result):
        return WITHOUT_SPECIAL
    return f"rows sum to less than 1: special tokens{' and the sink' if sink else ''} get the rest"


def _measured_sums(head: HeadWeights) -> str:
    least, most = (cell(each) for each in head.row_sums)
    if least != most:
        return f"rows sum to between {least} and {most}"
    return f"rows sum to {least.replace('1.00', '1')}"


def _leaves_out_keys(view: HeadView) -> bool:
    return sum(map(len, view.key_groups)) < len(view.head.key_tokens)


def view_words(view: HeadWeights | HeadView) -> list[str]:
    """What was joined, what is left of it, and what is proved; nothing of a head as it is."""
    if not isinstance(view, HeadView):
        return []
    remarks = [joined_words(view.by)] if view.by.joins else [SPANS] if spans(view) else []
    if view.emptied:
        verb = "has" if view.emptied == 1 else "have"
        remarks.append(f"{counted(view.emptied, 'query')} {verb} nothing left")
    if view.by.joins or view.special is not Special.SHOW or spans(view):
        remarks.append("the certificate is that of the weights by tokens")
    return remarks


def spans(view: HeadView) -> bool:
    """Whether several tokens are taken together that are no word."""
    return not view.by.joins and any(len(group) > 1 for group in (*view.query_groups, *view.key_groups))


def overview_view_words(result: Overview) -> list[str]:
    """How several heads are looked at, in words."""
    mass = result.special_mass if result.aim is None else None  # that of all rows says nothing of one
    phrases = [special_words(mass, "the attention of all heads")]
    phrases += [joined_words(result.by)] if result.by.joins else [SPANS] if result.aim_spans else []
    if result.special is Special.RENORMALISE:
        phrases.append(WITHOUT_SPECIAL)
    if result.tokens is not None:
        phrases.append("certificates are those of the weights by tokens")
    return [phrase for phrase in phrases if phrase]
