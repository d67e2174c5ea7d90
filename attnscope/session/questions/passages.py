"""Passages that an answer may come from, and the answer as the model reads it behind them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attnscope import incoming
from attnscope.analysis.answers.answered import Answered
from attnscope.analysis.prediction import last_of
from attnscope.analysis.rows import Layer
from attnscope.attention import Capture
from attnscope.capture.returned import Returned
from attnscope.capture.running import evaluating, if_it_writes
from attnscope.errors import InputError
from attnscope.model.inputs.generation import LIKELIEST, write
from attnscope.model.inputs.given import Numbered
from attnscope.model.inputs.target import Target
from attnscope.results import Verdict
from attnscope.results.base.groups import Passage, units_of_text
from attnscope.session.choosing import Chosen
from attnscope.session.prompts import Field, Prompt
from attnscope.session.questions.answers import GIVEN, ids_behind, read_behind, spellable
from attnscope.session.questions.rows import (
    attention_of,
    check_whole_fits,
    layers_of,
    may_read_rows,
    sample_with,
)
from attnscope.session.reading import Reading
from attnscope.spelling import spelled
from attnscope.tokens import Tokens
from attnscope.vocabulary import PASSAGES, Unit

PASSAGE, QUESTION = "passage ", "{question}"
BETWEEN = "\n\n"  # separator of inserted passages
MOST_EACH, SUBSETS = 64, 128  # most passages that are each removed; random subsets of more


def woven(text: str, passages: Sequence[str], question: str = "") -> Prompt:
    """A prompt with the passages at `{passages}`, else in front; each passage is a field."""
    if len(passages) < 2:
        raise InputError(f"{len(passages)} of passages: a source is told apart from two on")
    if empty := [i for i, each in enumerate(passages) if not each.strip()]:
        raise InputError(f"passage {empty[0]} is empty")
    if text.count(PASSAGES) > 1:
        raise InputError(f"{PASSAGES} stands twice in the prompt: passages stand in one place")
    before, there, after = text.replace(QUESTION, question).partition(PASSAGES)
    if not there:
        before, after = "", BETWEEN + before
    fields = dict[str, Field]()
    for i, each in enumerate(passages):
        before += BETWEEN if i else ""
        fields[f"{PASSAGE}{i}"] = Field(each, ((len(before), len(before) + len(each)),))
        before += each
    return Prompt(before + after, fields)


def passages_in(file: Path) -> tuple[str, ...]:
    """The passages in a JSON file: a list of texts."""
    name = f"--passages {incoming.named(file)}"
    incoming.check_there(file, "the passages")
    given = incoming.parsed(incoming.content(file, "the passages"), name)
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise InputError(f'{name} is no list of texts: write ["first passage", "second passage"]')
    return tuple(given)


@dataclass(frozen=True, eq=False)
class Cut:
    """Passages of a prompt, the unit that cut them (None: given by the user), and the text that is kept."""

    passages: tuple[Passage, ...]
    by: Unit | None
    kept: str


def cut(tokens: Tokens, by: str | None, context: str | None, fields: Iterable[str] = ()) -> Cut:
    """The passages of a prompt, given or cut by `by`; `InputError` where there are fewer than two."""
    given = {each.name: each.positions for each in tokens.fields if each.name.startswith(PASSAGE)}
    if lost := [name for name in fields if name.startswith(PASSAGE) and name not in given]:
        raise InputError(f"{lost[0]} is not found in what the model reads: it may be cut off")
    if given:
        if by is not None or context is not None:
            raise InputError("--passages says what is a passage: leave --by and --context out")
        return _cut(tokens, [*given.values()], None)
    inside = None if context is None else {*tokens.span(context).positions}
    units = [Unit(by)] if by else [Unit.PASSAGE, Unit.SENTENCE]
    for unit in units:
        groups = _groups(tokens, unit, inside)
        if len(groups) > 1:
            return _cut(tokens, groups, unit)
    finer = "--by sentence cuts finer, " if by == Unit.PASSAGE else ""
    raise InputError(
        "there are no two passages beside the question, of which one could be the source: "
        f"{finer}--context says where passages stand, --passages gives them"
    )


def _groups(tokens: Tokens, unit: Unit, inside: set[int] | None) -> list[tuple[int, ...]]:
    """Token positions of each unit of text, without the question at the end unless `inside` is given."""
    said = [
        tuple(i for i in group if i not in tokens.of_template and not tokens.items[i].special)
        for group in units_of_text(tokens, unit)
    ]
    messages = [{*each.said} for each in tokens.sections] or [{*range(len(tokens))}]
    groups = [part for group in said for each in messages if (part := tuple(i for i in group if i in each))]
    groups = [group for group in groups if text_of(tokens, group)]
    if inside is not None:
        return [part for group in groups if (part := tuple(i for i in group if i in inside))]
    asks = [i for i, group in enumerate(groups) if "?" in text_of(tokens, group)]
    return groups[: asks[-1] if asks and unit is Unit.SENTENCE else -1]


def _cut(tokens: Tokens, groups: Sequence[tuple[int, ...]], by: Unit | None) -> Cut:
    taken = {place for group in groups for place in group} | tokens.of_template
    kept = [i for i, token in enumerate(tokens.items) if i not in taken and not token.special]
    passages = tuple(Passage(text_of(tokens, group), group) for group in groups)
    return Cut(passages, by, " ".join(text_of(tokens, run) for run in _runs(kept)).strip())


def _runs(places: Sequence[int]) -> list[list[int]]:
    runs = list[list[int]]()
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def text_of(tokens: Tokens, positions: Sequence[int]) -> str:
    """The text of consecutive tokens, as it stands in the prompt."""
    placed = [token for i in positions if (token := tokens.items[i]).span is not None]
    if not placed or placed[0].part >= len(tokens.texts):
        return str(spelled(tokens, positions)).strip()
    spans = [token.span for token in placed if token.part == placed[0].part and token.span is not None]
    return tokens.texts[placed[0].part][min(a for a, _ in spans) : max(b for _, b in spans)].strip()


@dataclass(frozen=True, eq=False)
class Answers:
    """A reading with the answer in it, the answer's rows for experiments, and its token positions.

    `positions` are those of the answer's tokens among `tokens`; `sentences` are indices into these.
    """

    reading: Reading
    answered: Answered
    tokens: Tokens
    positions: tuple[int, ...]
    sentences: tuple[tuple[int, ...], ...]
    how: str


def answered(
    reading: Reading, answer: str | None, generate: int | None = None, whole: bool = False
) -> Answers:
    """The prompt and the `answer` read together, or a generated one of at most `generate` tokens.

    The answer is cut into sentences unless it is asked about as a `whole`.
    """
    model = reading.model
    if isinstance(model.tokenizer, Numbered) or model.tokenizer is None:
        raise InputError("an answer's sources are told of texts: give a model with its tokenizer, and a text")
    if reading.target is not None:
        return _of_decoder(reading, reading.target, answer, generate, whole)
    prompt = reading.encoded.tokens
    prompt = prompt.only(range(last_of(prompt) + 1))
    ids, how = (
        _written(reading, prompt, generate or 1)
        if answer is None
        else (ids_behind(reading, prompt, answer), GIVEN)
    )
    behind = read_behind(reading, prompt, ids, how)
    read, known = behind.encoded.tokens, behind.encoded.inputs
    rows = tuple(range(len(prompt) - 1, len(read) - 1))
    told = Answered(model.module, known, len(read), rows, ids, apart=False)
    return Answers(behind, told, read, *_sentences(read, len(prompt), whole), how)


def _written(reading: Reading, prompt: Tokens, most: int) -> tuple[tuple[int, ...], str]:
    model = reading.model
    with (
        reading.listener.working("writing the answer"),
        if_it_writes(model.module, reading.encoded.inputs, most, model.name),
        evaluating(model.module),
    ):
        made = write(model.module, reading.encoded.inputs, most, model.name)
    ids = made.ids[len(prompt) : len(made.ids) - made.finished]
    if not ids or not model.tokenizer.decode(list(ids), skip_special_tokens=True).strip():
        raise InputError(f"{model.name} writes nothing that could be from a passage: give --answer")
    return tuple(ids), LIKELIEST


def _of_decoder(
    reading: Reading, target: Target, answer: str | None, generate: int | None, whole: bool
) -> Answers:
    if generate is not None and len(target.tokens) > generate + target.first:
        some = range(generate + target.first)
        target = replace(target, ids=target.ids[:, : len(some)], tokens=target.tokens.only(some))
    tokens, how = target.tokens, GIVEN if answer is not None else "as it writes by itself"
    if len(tokens) == target.first:
        raise InputError(f"{reading.model.name} writes nothing that could be from a passage: give --answer")
    if answer is not None and tokens.unknown:
        spellable(reading, tokens.ids[target.first :], answer)
    behind, length = replace(reading, target=target), len(reading.encoded.tokens)
    first = target.first
    rows = tuple(range(first - 1, len(tokens) - 1))
    told = Answered(reading.model.module, behind.inputs, length, rows, tokens.ids[first:], apart=True)
    return Answers(behind, told, tokens, *_sentences(tokens, first, whole), how)


def _sentences(
    tokens: Tokens, first: int, whole: bool
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    positions = tuple(range(first, len(tokens)))
    try:
        units = (positions,) if whole else units_of_text(tokens, Unit.SENTENCE)
    except InputError:
        units = (positions,)
    groups = [tuple(i for i in unit if i >= first and not tokens.items[i].special) for unit in units]
    sentences = tuple(tuple(i - first for i in group) for group in groups if group)
    return positions, sentences or (tuple(range(len(positions))),)


def attention_behind(
    answers: Answers, chosen: Chosen
) -> tuple[Capture | Returned, list[Layer], dict[Verdict, int]]:
    """The attention of all layers; of a long text only the rows that write the answer, and samples."""
    reading, sampled = answers.reading, None
    if may_read_rows(reading, chosen):
        sampled = sample_with(len(answers.tokens), *answers.answered.rows)
    else:
        check_whole_fits(reading, chosen, "cite")
    attention = attention_of(reading, chosen, sampled)
    if isinstance(attention, Capture):
        attention.check_in_place("what heads look at is told by passages")
    return attention, *layers_of(attention, chosen)
