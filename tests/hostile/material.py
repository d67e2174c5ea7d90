"""What is damaged: sound folders of models, pictures, sounds, stored results and arrays, each made once.

They are made by the specimens of the other tests, in a process of their own each, and kept in one folder.
"""

import getpass
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SPECIMENS = Path(__file__).parents[1] / "specimens"
if str(SPECIMENS) not in sys.path:
    sys.path.insert(0, str(SPECIMENS))

# by what they read; `folder` makes any of these
BUNDLED = ("demo", "demo-causal", "demo-translate", "demo-reader", "demo-caption", "demo-speech")
TEXTS = (
    "bert",
    "bert-masked",
    "sharded",
    "gpt2",
    "llama",
    "bart",
    "t5",
    "roberta",
    "deberta-v2",
    "xlm-roberta",
    "mamba",
)
PICTURES = ("vit", "clip", "llava", "swin", "gemma3", "dinov2")
SOUNDS = ("wav2vec2", "whisper")


def kept() -> Path:
    """Where material stays from one run to the next: another place for every state of what makes it."""
    makers = [
        Path(__file__),
        *sorted(SPECIMENS.glob("*.py")),
        *sorted(SPECIMENS.parents[1].glob("attnscope/results/**/*.py")),
    ]
    state = hashlib.sha256(b"".join(file.read_bytes() for file in makers)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"attnscope-hostile-{getpass.getuser()}-{state}"


class Material:
    """The folder of everything that is made once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    def folder(self, name: str) -> Path:
        """The folder of a sound model."""
        if name in BUNDLED:
            from attnscope import demo

            return demo.folder(name)
        return self._once(f"model-{name}", lambda folder: _model(name, folder))

    def media(self) -> Path:
        """Pictures and sounds of many sorts, all of them sound."""
        return self._once("media", _media)

    def stored(self) -> Path:
        """Every kind of result as .json and as .npz."""
        return self._once("stored", _stored)

    def _once(self, name: str, make: Callable[[Path], object]) -> Path:
        done, part = self.root / name, self.root / f".{name}.{os.getpid()}"
        if done.exists():
            return done
        child = os.fork()
        if child == 0:
            part.mkdir(parents=True)
            code, told = 1, part.with_suffix(".log")
            os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            try:
                make(part)
                part.rename(done)
                code = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            os._exit(code)
        if os.waitpid(child, 0)[1] != 0 and not done.exists():
            raise RuntimeError(f"cannot make {name}: {part.with_suffix('.log').read_text()[-2000:]}")
        shutil.rmtree(part, ignore_errors=True)
        return done


def copy(source: Path, target: Path) -> Path:
    """A folder whose files are links to those of `source`: to change one, put a new file in its place."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.suffix not in (".md",):
            try:
                os.link(file, target / file.name)
            except OSError:  # another file system
                shutil.copy(file, target / file.name)
    return target


def _model(name: str, folder: Path) -> None:
    import checkpoints
    import media_models
    import sharded
    import torch
    import transformers as hf

    torch.manual_seed(5)
    if name in media_models.MODELS:
        media_models.save(name, folder)
    elif name == "bert":
        checkpoints.tiny_bert(folder)
    elif name == "bert-masked":
        checkpoints.tiny_bert(folder, hf.BertForMaskedLM)
    elif name == "sharded":
        sharded.in_shards(sharded.llama(), folder)
    elif name == "gpt2":
        size = checkpoints.vocabulary_size()
        model = hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=size, n_layer=2, n_head=4, n_embd=24, n_positions=48)
        )
        checkpoints.save(model, folder)
    elif name == "llama":
        checkpoints.save(sharded.llama(num_hidden_layers=2), folder)
    elif name in ("bart", "t5"):
        checkpoints.tiny_translator(folder, name)
    else:
        _with_its_tokenizer(name, folder)


def _with_its_tokenizer(name: str, folder: Path) -> None:
    """Models of other families, with a tokenizer of their own sort."""
    import small_tokenizers
    import transformers as hf

    tokenizer = small_tokenizers.BUILD["gpt2" if name == "mamba" else name]()
    ids = {"pad_token_id": tokenizer.pad_token_id or 0}
    sizes = {
        "vocab_size": len(tokenizer), "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 36, "max_position_embeddings": 64, **ids,
    }  # fmt: skip
    relative = {
        "relative_attention": True,
        "max_relative_positions": 7,
        "pos_att_type": ["c2p", "p2c"],
        "type_vocab_size": 0,
    }
    state = {"vocab_size": len(tokenizer), "hidden_size": 24, "num_hidden_layers": 2, "state_size": 4}
    made = {
        "roberta": lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(**sizes)),
        "xlm-roberta": lambda: hf.XLMRobertaModel(hf.XLMRobertaConfig(**sizes)),
        "deberta-v2": lambda: hf.DebertaV2Model(hf.DebertaV2Config(**sizes, **relative)),
        "mamba": lambda: hf.MambaForCausalLM(hf.MambaConfig(**state)),
    }
    made[name]().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _media(folder: Path) -> None:
    import media_models
    import numpy as np
    import soundfile
    from PIL import Image

    media_models.picture_file(folder)
    square = Image.open(folder / "square.png")
    for suffix in ("jpg", "gif", "bmp", "tiff", "webp"):
        square.save(folder / f"square.{suffix}")
    for mode in ("L", "1", "P", "CMYK", "I", "F", "LA", "RGBA"):
        (square.convert("RGB").convert(mode) if mode != "LA" else square.convert("LA")).save(
            folder / f"mode{mode}.tiff"
        )
    Image.fromarray(np.arange(2400, dtype=np.uint16).reshape(40, 60) * 20).save(folder / "deep.png")
    frames = [square.rotate(90 * turn) for turn in range(3)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    for width, height in ((1, 1), (1, 40), (40, 1), (2, 2500), (2500, 2), (3, 3), (700, 500)):
        square.resize((width, height)).save(folder / f"size{width}x{height}.png")
    media_models.sound_file(folder)
    media_models.sound_file(folder, 0.7, 8000, 2, "stereo.wav")
    tone, rate = soundfile.read(folder / "tone.wav")
    for suffix in ("flac", "ogg", "mp3"):
        soundfile.write(folder / f"tone.{suffix}", tone, rate)
    for name, samples, hertz in (
        ("none.wav", np.zeros(0), 16000),
        ("one.wav", np.ones(1), 16000),
        ("few.wav", np.ones(30), 16000),
        ("slow.wav", tone[:200], 10),
        ("fast.wav", tone, 192000),
        ("silent.wav", np.zeros(8000), 16000),
        ("channels.wav", np.repeat(tone[:800, None], 17, 1), 16000),
    ):
        soundfile.write(folder / name, samples, hertz)
    for name, number in (("nan.wav", np.nan), ("infinite.wav", np.inf), ("huge.wav", 1e30)):
        soundfile.write(folder / name, np.full(8000, number, np.float32), 16000, subtype="FLOAT")


def _stored(folder: Path) -> None:
    import made_stored

    from attnscope.render import files

    for number, (_, make) in enumerate(made_stored.MADE.items()):
        result = make()
        for suffix in (".json", ".npz"):
            (folder / f"{number:02}{suffix}").write_bytes(files.numbers(result, suffix))
