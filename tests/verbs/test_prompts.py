"""Many prompts: what is told of all is what each has alone, averaged by hand; bad ones are left out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from corpus_of_demo import Hearing
from scipy.stats import t as student
from transformers import BertForMaskedLM, BertTokenizerFast

import attnscope as at
from attnscope.errors import InputError
from attnscope.results.claims.prompts import Asked, Case

TEXTS = (  # of different lengths
    "I was watching the door when [MASK] opened.",
    "The dog saw the king when [MASK] slept.",
    "The old man lost the red box before [MASK] fell into the river.",
    "The king opened the door because [MASK] was cold.",
    "The girl found the [MASK] in the house.",
    "A man sold the box to the [MASK] again.",
)
AGAIN = ("box dog king box dog king", "river king door river king door", "cat girl man cat girl man")
ENCODER = Path(at.__file__).parent / "demo" / "encoder"


HEARD = Hearing()


@pytest.fixture(scope="module")
def demo() -> at.Model:
    return at.load("demo", listener=HEARD)


@pytest.fixture(scope="module")
def causal() -> at.Model:
    return at.load("demo-causal")


def row(told, name: str) -> int:
    return next(i for i, figure in enumerate(told.figures) if figure.name == name)


def by_hand(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean and the ends of its 95 % interval, as a textbook has them."""
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    reach = float(student.ppf(0.975, len(values) - 1)) * spread / len(values) ** 0.5
    return mean, mean - reach, mean + reach


def test_heads_over_prompts_have_the_mean_of_what_each_prompt_has_alone(demo: at.Model) -> None:
    told = demo.prompts(TEXTS).find("[MASK]", 4, controls=20)
    alone = [demo.read(text).find("[MASK]", 4, controls=20) for text in TEXTS]
    assert len({len(found.query_tokens) for found in alone}) >= 3
    assert told.asked is Asked.FIND
    assert told.values.shape == (48, 6)
    for layer, head in ((3, 11), (0, 4), (2, 7)):
        i = row(told, f"L{layer} H{head}")
        own = [float(found.weights[layer, head]) for found in alone]
        control = [
            max(float(found.controls.mean[layer, head]), float(found.elsewhere[layer, head]))
            for found in alone
        ]
        assert told.values[i].tolist() == own
        mean, low, high = by_hand(own)
        assert (told.mean[i], told.low[i], told.high[i]) == pytest.approx((mean, low, high))
        assert told.control_mean[i] == pytest.approx(sum(control) / 6)
        assert told.opposed(i) == tuple(k + 1 for k in range(6) if own[k] <= control[k])
        assert told.stands[i].tolist() == [found.stands_out((layer, head)) for found in alone]
        assert told.spread[i] == pytest.approx(float(np.std(own, ddof=1)))
    assert told.certified == {"certified": 6}
    # all heads at once need more than one head that was named before
    i = row(told, "L3 H11")
    excess = told.values[i] - told.controls[i]
    error = max(float(np.std(excess, ddof=1)), 0.02) / 6**0.5
    alone, among = (excess.mean() - float(student.ppf(1 - 0.025 / k, 5)) * error for k in (1, 48))
    assert (told.excess_low[i], told.excess_surely[i]) == pytest.approx((alone, among))
    assert told.excess_surely[i] < told.excess_low[i]
    # and what is next to nothing in every prompt is no finding
    tiny = [i for i in range(48) if told.mean[i] < 1e-3]
    assert tiny
    assert not any(told.excess_low[i] > 0 for i in tiny)
    assert all(told.ranking.index(i) > 0 for i in tiny)


def test_one_prompt_has_no_interval_and_says_so(demo: at.Model) -> None:
    told = demo.prompts(TEXTS[:1]).find("[MASK]", "door", controls=20)
    assert told.case is Case.FEW
    assert np.isnan(told.low).all()
    assert told.text(width=300).startswith("1 prompt is too few to tell ")


def test_changes_of_answers_are_averaged_and_the_other_sign_goes_against_them(demo: at.Model) -> None:
    told = demo.prompts(TEXTS).ablate(layers="2-3")
    alone = [demo.read(text).ablate(layers="2-3") for text in TEXTS]
    for layer, head in ((3, 11), (2, 5)):
        i = row(told, f"L{layer} H{head}")
        each = [next(h for h in one.heads if (h.layer, h.head) == (layer, head)) for one in alone]
        changes = [one.change for one in each]
        assert told.values[i].tolist() == changes
        assert told.mean[i] == pytest.approx(sum(changes) / 6)
        assert told.controls[i].tolist() == [one.typical for one in each]
        against = [k + 1 for k in range(6) if changes[k] * sum(changes) <= 0]
        assert told.opposed(i) == tuple(against)
    together = [one.group.effect.change for one in alone if one.group is not None]
    assert told.values[row(told, "all at once")].tolist() == together


def test_what_is_foretold_of_every_head_stands_beside_what_the_first_ones_really_do(demo: at.Model) -> None:
    how = {"rank": True, "top": 2, "replacement": "zero", "layers": "2-3"}
    told = demo.prompts(TEXTS).ablate(**how)
    alone = [demo.read(text).ablate(**how) for text in TEXTS]
    assert told.asked is Asked.RANK
    assert len(told.figures) == 24
    taken = 0
    for i, figure in enumerate(told.figures):
        for k, one in enumerate(alone):
            foretold = {(each.layer, each.head): each.change for each in one.predicted}
            really = {(each.layer, each.head): each.change for each in one.heads}
            place = figure.layer, figure.head
            assert told.values[i, k] == foretold[place]
            others = [abs(foretold[figure.layer, head]) for head in range(12) if head != figure.head]
            assert told.controls[i, k] == pytest.approx(sorted(others)[5])
            assert np.isnan(told.effects[i, k]) == (place not in really)
            if place in really:
                taken += 1
                assert told.effects[i, k] == really[place]
    assert taken == 2 * len(TEXTS)


def test_the_parts_of_an_answer_sum_in_the_mean_to_the_mean_of_the_untouched_models(demo: at.Model) -> None:
    told = demo.prompts(TEXTS[:3]).why(answer="it", against="they")
    model = BertForMaskedLM.from_pretrained(ENCODER).eval()
    tokenizer = BertTokenizerFast.from_pretrained(ENCODER)
    one, other = tokenizer.convert_tokens_to_ids(["it", "they"])
    leads = []
    for text in TEXTS[:3]:
        read = tokenizer(text, return_tensors="pt")
        place = read["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            logits = model(**read).logits[0, place].double()
        leads.append(float(logits[one] - logits[other]))
    assert np.isfinite(told.values).all(), "a part that is none of a text's brings 0 there"
    assert told.values.sum(axis=0) == pytest.approx(leads, abs=1e-3)
    assert told.mean.sum() == pytest.approx(sum(leads) / 3, abs=1e-3)
    assert any(f"is {told.mean.sum():+.4g}" in " ".join(told.notes) for _ in (0,))
    alone = demo.read(TEXTS[0]).why(answer="it", against="they")
    for part in alone.parts:
        i = row(told, part.name)
        assert told.values[i, 0] == part.direct
        lost = None if part.removed is None or not part.controls else -part.removed.total
        assert told.effects[i, 0] == lost if lost is not None else np.isnan(told.effects[i, 0])


ROWS = [
    {"who": who, "thing": thing}
    for who, thing in (
        ("dog", "door"), ("king", "box"), ("girl", "red box"), ("old man", "river"), ("cat", "house"),
        ("man", "door"),
    )
]  # fmt: skip


def evidence_by_hand(weights: np.ndarray, controls: np.ndarray, query: int, key: int) -> tuple[float, float]:
    """One head's weight, and the most that may explain it, written out."""
    count = len(weights)
    at_distance = [
        weights[q, q + key - query] for q in range(count) if q != query and 0 <= q + key - query < count
    ]
    to_key = [weights[q, key] for q in range(count) if q != query]
    found = [controls[:, query, key].max(), sum(to_key) / len(to_key), 1 / count]
    return weights[query, key], max([*found, *([sum(at_distance) / len(at_distance)] if at_distance else [])])


def test_links_of_many_prompts_are_those_of_a_plain_loop_over_prompts_and_control_texts(
    demo: at.Model,
) -> None:
    template = "The {who} was watching the {thing} when [MASK] fell."
    told = demo.prompts(template, fill=ROWS).links(controls=12)
    assert told.asked is Asked.LINKS
    assert told.figures, "something is linked in all of them"
    model = BertForMaskedLM.from_pretrained(ENCODER, attn_implementation="eager").eval()
    tokenizer = BertTokenizerFast.from_pretrained(ENCODER)

    def weights_of(ids: object) -> np.ndarray:
        with torch.no_grad():
            made = model(input_ids=torch.as_tensor(ids)[None], output_attentions=True).attentions
        return torch.stack([each[0] for each in made]).double().numpy()

    for k, fields in enumerate(ROWS):
        text = template.format(**fields)
        links = demo.read(text).links(controls=12)
        ids = tokenizer(text)["input_ids"]
        own, others = weights_of(ids), np.stack([weights_of(each) for each in links.ids])
        words = [tokenizer.decode([each]) for each in ids]
        places = {"field:who": range(2, 2 + len(fields["who"].split()))}
        start = words.index("watching") + 2
        places["field:thing"] = range(start, start + len(fields["thing"].split()))
        for i, figure in enumerate(told.figures):
            query, key = figure.name.split(" from ")[1].split(" at ")
            ends = [
                places.get(end)
                or [j for j, word in enumerate(words) if word.lower() == end.strip("“”").lower()]
                for end in (query, key)
            ]
            if "#" in figure.name or not all(ends):
                continue
            head = own[figure.layer, figure.head], others[:, figure.layer, figure.head]
            # words next to one another are no pair, nor is a word with the same one
            every = [evidence_by_hand(*head, q, p) for q in ends[0] for p in ends[1] if abs(q - p) > 1]
            weight, explained = max(every, key=lambda each: each[0] - each[1])
            assert told.values[i, k] == pytest.approx(weight, abs=1e-5)
            assert told.controls[i, k] == pytest.approx(explained, abs=1e-5)
    assert (told.mean - told.control_mean >= 0.1 - 1e-9).all()
    among = int(next(note for note in told.notes if "links were held" in note).split()[0].replace(",", ""))
    excess = told.values[0] - told.controls[0]
    error = max(float(np.std(excess, ddof=1)), 0.02) / len(ROWS) ** 0.5
    surely = excess.mean() - float(student.ppf(1 - 0.025 / among, len(ROWS) - 1)) * error
    assert told.excess_surely[0] == pytest.approx(surely)


def test_where_no_words_are_shared_nothing_is_linked_and_the_first_words_say_so(demo: at.Model) -> None:
    told = demo.prompts(["A dog saw my door.", "Kings lost many rivers"]).links(controls=3)
    assert told.figures == ()
    assert told.case is Case.NOTHING
    assert told.text(width=300).startswith("No two words are linked ")
    assert "no two words or fields stand in most of these prompts" in told.text(width=300)


def test_methods_of_flow_are_averaged_beside_distance_alone(demo: at.Model) -> None:
    told = demo.prompts(TEXTS[:2]).flow("[MASK]")
    alone = [demo.read(text).flow("[MASK]") for text in TEXTS[:2]]
    for method in ("rollout", "attention"):
        trust = [{each.method: each for each in one.ablated.trust} for one in alone]
        i = row(told, method)
        assert told.values[i].tolist() == [each[method].correlation for each in trust]
        assert told.controls[i].tolist() == [each["distance alone"].correlation for each in trust]
        assert told.stands[i].tolist() == [each[method].correlation > each[method].high for each in trust]


def test_a_field_has_the_effect_of_its_own_tokens_beside_the_others(demo: at.Model) -> None:
    given = [{"text": TEXTS[0], "spans": {"seen": "the door"}}, {"text": TEXTS[3], "spans": {"seen": "door"}}]
    told = demo.prompts(given).flow("[MASK]")
    i = row(told, "field:seen")
    for k, (text, places) in enumerate([(TEXTS[0], [4, 5]), (TEXTS[3], [5])]):
        effects = demo.read(text).flow("[MASK]").ablated.effects
        rest = [e for p, e in enumerate(effects) if p not in places and np.isfinite(e)]
        assert told.values[i, k] == pytest.approx(np.mean(effects[places]))
        assert told.controls[i, k] == pytest.approx(np.mean(rest))
    assert told.figures[i].measured == "nats lost"


def test_an_answer_stands_beside_its_probability_in_the_other_prompts(demo: at.Model) -> None:
    told = demo.prompts(TEXTS).predict()
    model = BertForMaskedLM.from_pretrained(ENCODER).eval()
    tokenizer = BertTokenizerFast.from_pretrained(ENCODER)
    chances = []
    for text in TEXTS:
        read = tokenizer(text, return_tensors="pt")
        place = read["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            chances.append(model(**read).logits[0, place].double().softmax(-1).numpy())
    own = [int(each.argmax()) for each in chances]
    i = row(told, "own answer")
    assert told.values[i] == pytest.approx([chances[k][own[k]] for k in range(6)], abs=1e-5)
    others = [np.mean([chances[j][own[k]] for j in range(6) if j != k]) for k in range(6)]
    assert told.controls[i] == pytest.approx(others, abs=1e-5)
    for number in set(own):
        name = f"“{tokenizer.decode([number]).strip()}”"
        assert told.values[row(told, name)] == pytest.approx([each[number] for each in chances], abs=1e-5)
        assert int(told.stands[row(told, name)].sum()) == own.count(number)
    assert told.ranking[0] == i
    assert told.verdict is None


def test_layers_are_averaged_in_their_order(causal: at.Model) -> None:
    told = causal.prompts(AGAIN).predict_layers(controls=3)
    alone = [causal.read(text).predict_layers(controls=3) for text in AGAIN]
    assert told.ranking == tuple(range(len(told.figures)))
    for i in range(len(told.figures)):
        assert told.values[i].tolist() == [one.places[0].layers[i].probability for one in alone]
        assert told.controls[i].tolist() == [one.places[0].layers[i].control for one in alone]


def test_why_counts_in_how_many_prompts_a_part_has_the_same_sign(causal: at.Model) -> None:
    told = causal.prompts(AGAIN).why(1, 3, 4, 2)
    alone = [causal.read(text).why(1, 3, 4, 2) for text in AGAIN]
    first = told.figures[told.ranking[0]]
    shares = [
        next(part.contrast for part in one.parts if f"{part.name} on the {part.side} side" == first.name)
        for one in alone
    ]
    assert told.values[told.ranking[0]].tolist() == shares
    same = sum(share * sum(shares) > 0 for share in shares)
    assert len(told.opposed(told.ranking[0])) == 3 - same
    assert f"the same sign in {same} of 3" in told.text(width=300)
    reasons = [
        sum(f"{part.name} on the {part.side} side" == first.name for part in one.parts if one.is_reason(part))
        for one in alone
    ]
    assert told.stands[told.ranking[0]].tolist() == [bool(each) for each in reasons]
    assert sum(reasons) >= 2


def test_a_field_that_stands_twice_is_named_by_its_number(demo: at.Model) -> None:
    rows = [{"a": "door"}, {"a": "king"}]
    asked = demo.prompts("The {a} saw the {a}.", fill=rows)
    told = asked.find("field:a#1", "field:a#2", controls=5)
    alone = demo.read("The king saw the king.").find("2", "5", controls=5)
    assert told.values[:, 1] == pytest.approx(alone.weights.ravel())
    with pytest.raises(InputError, match=r"stands 2 times: choose one of field:a#1 \(2\), field:a#2 \(5\)"):
        asked.find("field:a", "saw", controls=5)
    with pytest.raises(InputError, match=r"no field 'field:a#3' in the input: there are field:a#1 \(2\)"):
        asked.find("field:a#3", "saw", controls=5)


def test_an_answer_and_a_link_may_be_fields_of_each_prompt(demo: at.Model) -> None:
    rows = [{"thing": "door", "meant": "it"}, {"thing": "box", "meant": "he"}]
    template = "The king saw the {thing} when [MASK] fell."
    told = demo.prompts(template, fill=rows).ablate(
        layers=3, each=True, link="[MASK]->field:thing", answer="field:meant"
    )
    for k, row_given in enumerate(rows):
        text = f"The king saw the {row_given['thing']} when [MASK] fell."
        alone = demo.read(text).ablate(layers=3, each=True, link="7->5", answer=row_given["meant"])
        assert alone.tokens.names[7] == "[MASK]"
        own = {f"L{each.layer} H{each.head}": each.change for each in alone.heads}
        assert {f.name: told.values[i, k] for i, f in enumerate(told.figures)} == own


def test_one_bad_prompt_is_told_with_its_number_and_the_others_go_on(demo: at.Model) -> None:
    HEARD.told.clear()
    given = [TEXTS[0], "A cat.", {"words": "the door"}, TEXTS[1], {"text": TEXTS[3], "spans": {"a": [3, 99]}}]
    told = demo.prompts(given).find("[MASK]", 4, controls=5)
    assert [each.line for each in told.prompts] == [1, 4]
    assert [each.line for each in told.refused] == [2, 3, 5]
    assert HEARD.told[0].startswith("prompt 2: no token '[MASK]' in the input")
    assert HEARD.told[1] == "prompt 3: it has no text under 'text': its keys are words"
    assert "the span 'a' is neither words nor characters of the text" in HEARD.told[2]
    alone = demo.prompts([TEXTS[0], TEXTS[1]]).find("[MASK]", 4, controls=5)
    assert told.values.tolist() == alone.values.tolist()


def test_no_prompt_that_has_an_answer_is_an_error(demo: at.Model) -> None:
    with pytest.raises(InputError, match="none of the prompts has an answer; prompt 1: no token"):
        demo.prompts(["A cat.", "A dog."]).find("[MASK]", 1)
    with pytest.raises(InputError, match="give a list of texts, one at least"):
        demo.prompts([])
    with pytest.raises(InputError, match="the table has no column 'thing': it has who"):
        demo.prompts("The {who} saw the {thing}.", fill=[{"who": "king"}])
    with pytest.raises(InputError, match=r"no field 'field:b' in the input: there are field:a \(2\)"):
        demo.prompts("The {a} slept.", fill=[{"a": "king"}]).find("field:b", "field:a")
