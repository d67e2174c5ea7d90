"""Folders of models with one to three things changed in configs, tokenizers, weights, indices, adapters.

Code is planted in some of them.
"""

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from .. import draw
from ..commands import line, written
from ..invocation import Invocation
from ..material import BUNDLED, PICTURES, SOUNDS, TEXTS, Material, copy
from . import planted

KEYS = {  # names that matter, in the files of a model
    name: tuple(words.split())
    for name, words in {
        "config": """
            num_hidden_layers num_attention_heads num_key_value_heads hidden_size head_dim vocab_size
            pad_token_id bos_token_id eos_token_id model_type architectures torch_dtype dtype rope_scaling
            rope_parameters rope_theta output_hidden_states output_attentions attn_implementation
            _attn_implementation id2label label2id num_labels layer_types quantization_config is_decoder
            is_encoder_decoder add_cross_attention tie_word_embeddings max_position_embeddings type_vocab_size
            hidden_act layer_norm_eps initializer_range sliding_window use_cache intermediate_size
            chunk_size_feed_forward problem_type transformers_version return_dict torchscript pruned_heads
            tokenizer_class decoder_start_token_id encoder_layers decoder_layers d_model text_config
            vision_config image_size patch_size num_channels hidden_dropout_prob attention_probs_dropout_prob
            auto_map _name_or_path use_bfloat16 generation_config task_specific_params finetuning_task
            sep_token_id num_local_experts name_or_path""",
        "tokenizer": """
            model vocab merges unk_token added_tokens normalizer pre_tokenizer post_processor decoder
            truncation padding version type pattern id content special special_tokens
            continuing_subword_prefix max_input_chars_per_word ids tokens byte_fallback dropout single pair
            lowercase tokenizer_class model_max_length mask_token cls_token sep_token pad_token eos_token
            bos_token added_tokens_decoder auto_map chat_template extra_special_tokens
            clean_up_tokenization_spaces model_input_names padding_side""",
        "generation": """
            max_length max_new_tokens min_length num_beams do_sample temperature top_p top_k eos_token_id
            pad_token_id bos_token_id decoder_start_token_id forced_bos_token_id forced_eos_token_id
            suppress_tokens begin_suppress_tokens no_repeat_ngram_size bad_words_ids cache_implementation
            cache_config num_return_sequences penalty_alpha stop_strings repetition_penalty length_penalty
            num_beam_groups prompt_lookup_num_tokens watermarking_config constraints return_dict_in_generate
            output_scores use_cache guidance_scale custom_generate compile_config assistant_model
            diversity_penalty early_stopping max_time exponential_decay_length_penalty sequence_bias
            token_healing min_p typical_p epsilon_cutoff eta_cutoff encoder_repetition_penalty
            trust_remote_code is_assistant""",
        "processor": """
            size crop_size do_resize do_center_crop do_normalize do_rescale rescale_factor image_mean
            image_std resample image_processor_type feature_extractor_type processor_class patch_size
            sampling_rate feature_size chunk_length n_fft hop_length padding_value nb_max_frames n_samples
            do_convert_rgb auto_map return_attention_mask num_additional_image_tokens
            vision_feature_select_strategy image_seq_length do_pad""",
        "adapter": """
            peft_type base_model_name_or_path target_modules r lora_alpha task_type auto_mapping
            modules_to_save""",
    }.items()
}  # fmt: skip
OFTEN = ("heads", "predict", "verify", "report", "model")
AUTOS = {
    "config.json": ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM"),
    "tokenizer_config.json": ("AutoTokenizer",),
    "processor_config.json": ("AutoProcessor",),
    "preprocessor_config.json": ("AutoImageProcessor", "AutoFeatureExtractor", "AutoProcessor"),
}

Change = Callable[[Random, Path, Path], None]


def make(rng: Random, here: Path, material: Material) -> Invocation:
    name = rng.choice([*BUNDLED * 4, *TEXTS * 3, *PICTURES, *SOUNDS])
    folder = copy(material.folder(name), here / "folder")
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(CHANGES)(rng, here, folder)
    argv = _command(rng, name, here, material)
    if draw.chance(rng, 0.05):
        argv.append(rng.choice(["--allow-pickle", "--trust-remote-code"]))
    if draw.chance(rng, 0.03):
        argv.append("-v")
    return Invocation(tuple(argv), unprivileged=draw.chance(rng, 0.02))


def _command(rng: Random, name: str, here: Path, material: Material) -> list[str]:
    argv = line(rng, here, material, "folder", OFTEN if draw.chance(rng, 0.5) else ())
    if name in (*PICTURES, *SOUNDS) and draw.chance(rng, 0.8):
        option, file = ("--image", "square.png") if name in PICTURES else ("--audio", "tone.wav")
        shutil.copy(material.media() / file, here / file)
        argv = [rng.choice(OFTEN[:-1]), option, file, "-m", "folder"]
    return argv + (written(rng) if draw.chance(rng, 0.2) else [])


def put(file: Path, content: bytes) -> None:
    """A new file in the place of a link to a sound one."""
    if file.is_symlink() or file.exists():
        file.unlink()
    file.write_bytes(content)


def _json_file(name: str, keys: tuple[str, ...], otherwise: Any = None) -> Change:
    def change(rng: Random, here: Path, folder: Path) -> None:
        file = folder / name
        try:
            document = json.loads(file.read_text()) if file.is_file() else otherwise
        except (ValueError, RecursionError):
            return
        if document is not None:
            put(file, draw.json_bytes(rng, draw.changed_json(rng, document, keys)))

    return change


def _some_bytes(rng: Random, here: Path, folder: Path) -> None:
    """Damage in the bytes of any file."""
    file = rng.choice(_files(folder))
    put(file, draw.changed_bytes(rng, file.read_bytes()))


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file()) or [folder / "config.json"]


def _weights(rng: Random, here: Path, folder: Path) -> None:
    """The header of a safetensors file changed, or what stands behind it."""
    files = [file for file in _files(folder) if file.suffix == ".safetensors"]
    if not files:
        return
    file = rng.choice(files)
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0] if len(content) > 8 else 0
    if size > len(content):
        return
    try:
        header = json.loads(content[8 : 8 + size])
    except ValueError:
        return
    body = content[8 + size :]
    if draw.chance(rng, 0.3):
        body = _numbers(rng, body)
    else:
        header = _header(rng, header)
    written_header = json.dumps(header).encode()
    length = rng.choice([len(written_header)] * 12 + [0, 1, 2**63, 2**64 - 1, 2**31, len(written_header) + 9])
    put(file, struct.pack("<Q", length) + written_header + body)


def _header(rng: Random, header: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in header if name != "__metadata__"]
    if not names or draw.chance(rng, 0.3):
        changed = draw.changed_json(rng, header, ("__metadata__", "dtype", "shape", "data_offsets"))
        return changed if isinstance(changed, dict) else {}
    name, other = rng.choice(names), rng.choice(names)
    action = rng.randrange(7)
    if action == 0:
        del header[name]
    elif action == 1:
        header[rng.choice([name + "x", "", "\u202e", name.replace("query", "lora_A"), "model." + name])] = (
            header.pop(name)
        )
    elif action == 2:
        header[name], header[other] = header[other], header[name]
    elif action == 3:
        header[name]["shape"] = rng.choice(
            [header[name]["shape"][::-1], [-1], [], [0], [2**40, 2**40], [*header[name]["shape"], 1]]
        )
    elif action == 4:
        header[name]["dtype"] = rng.choice(
            ["F64", "F16", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "nope", "F4"]
        )
    elif action == 5:
        header["__metadata__"] = rng.choice(
            [{}, {"format": "tf"}, {"format": 1}, None, [], {"format": "\u202e"}]
        )
    else:
        header[
            rng.choice(["bert.encoder.layer.0.attention.self.query.lora_A", "x", "pooler.dense.weight"])
        ] = dict(header[name])
    return header


def _numbers(rng: Random, body: bytes) -> bytes:
    """Weights that are no numbers, too large, or noise."""
    if len(body) < 64:
        return body
    bad = rng.choice(
        [bytes.fromhex(each) for each in ("0000c07f", "0000807f", "ffff7f7f", "00000000", "01000000")]
    )
    count = rng.choice([1, 1, 100, len(body) // 4])
    place = rng.randrange(len(body) // 4) * 4
    made = body[:place] + bad * count + body[place + 4 * count :]
    return made[: len(body)]


def _structure(rng: Random, here: Path, folder: Path) -> None:
    """A file missing, empty, a folder, a link into nothing, into itself or elsewhere, or not to be opened."""
    file = rng.choice(_files(folder))
    file.unlink(missing_ok=True)
    action = rng.randrange(9)
    if action == 0:
        return
    if action == 1:
        file.write_bytes(b"")
    elif action == 2:
        file.mkdir()
    elif action == 3:
        file.symlink_to("nothing/here")
    elif action == 4:
        file.symlink_to(file.name)
    elif action == 5:
        file.symlink_to(
            rng.choice(["/etc/passwd", "/dev/null", "/dev/zero", "/proc/self/environ", "..", "/dev/urandom"])
        )
    elif action == 6:
        os.mkfifo(file)
    elif action == 7:
        file.write_bytes(rng.randbytes(300))
    else:
        file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")


def _plant(rng: Random, here: Path, folder: Path) -> None:
    """Pickles and code, with the entries that would lead a library to them."""
    action = rng.randrange(4)
    if action == 0:
        put(folder / planted.name_of_pickle(rng), planted.pickled(here, draw.chance(rng, 0.5)))
        if draw.chance(rng, 0.6):
            for file in _files(folder):
                if ".safetensors" in file.name:
                    file.unlink()
    elif action == 1:
        put(folder / "pytorch_model.bin.index.json", json.dumps({"weight_map": {"a": "b.bin"}}).encode())
        put(folder / "b.bin", planted.pickled(here))
    elif action == 2:
        for name in ("modeling", "tokenization", "configuration", "processing"):
            put(folder / f"{name}_planted.py", planted.python(here))
        put(folder / "__init__.py", planted.python(here))
        for file, autos in AUTOS.items():
            _with_auto_map(rng, folder / file, autos)
    else:
        (folder / "custom_generate").mkdir(exist_ok=True)
        put(folder / "custom_generate" / "generate.py", planted.python(here))
        put(folder / "chat_template.jinja", b"{{ cycler.__init__.__globals__.os.system('true') }}")


def _with_auto_map(rng: Random, file: Path, autos: tuple[str, ...]) -> None:
    try:
        document = json.loads(file.read_text()) if file.is_file() else {}
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    own = ("modeling_planted.Planted", "other/repo--modeling_planted.Planted", "modeling_planted")
    reference = rng.choice([*own, "../x.Y", "", 3, None])
    document["auto_map"] = {
        auto: [reference, None] if auto == "AutoTokenizer" else reference for auto in autos
    }
    if draw.chance(rng, 0.5):
        document["model_type" if file.name == "config.json" else "tokenizer_class"] = "planted"
    put(file, json.dumps(document).encode())


def _index(rng: Random, here: Path, folder: Path) -> None:
    """An index of shards that leads elsewhere, or one where none belongs."""
    file = folder / "model.safetensors.index.json"
    document = (
        json.loads(file.read_text()) if file.is_file() else {"weight_map": {"a.weight": "model.safetensors"}}
    )
    shards = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(shards, dict) or not shards:
        return
    name = rng.choice(list(shards))
    elsewhere = ("../../etc/passwd", "/etc/passwd", "", ".", "nothing", "config.json", "\u202e", "a" * 300)
    shards[name] = rng.choice([*elsewhere, 3, None, []])
    if draw.chance(rng, 0.3):
        document = draw.changed_json(rng, document, ("weight_map", "metadata"))
    put(file, draw.json_bytes(rng, document))


def _adapter(rng: Random, here: Path, folder: Path) -> None:
    """An adapter's config, with or without its weights."""
    config: Any = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 4,
        "target_modules": ["query"],
        "base_model_name_or_path": "folder",
    }
    if draw.chance(rng, 0.7):
        config = draw.changed_json(rng, config, KEYS["adapter"])
    put(folder / "adapter_config.json", draw.json_bytes(rng, config))
    if draw.chance(rng, 0.5):
        put(folder / "adapter_model.safetensors", draw.changed_bytes(rng, struct.pack("<Q", 2) + b"{}"))


def _tokenizer_of_nowhere(rng: Random, here: Path, folder: Path) -> None:
    """The ids of a tokenizer out of range, its words gone, a pattern without end."""
    file = folder / "tokenizer.json"
    try:
        document = json.loads(file.read_text())
        model = document["model"]
        action = rng.randrange(5)
        if action == 0:
            added = rng.choice(document["added_tokens"])
            added["id"] = rng.choice([8589934592, -1, "3", None, 1.5, 2**31, 10**6])
        elif action == 1:
            model["vocab"] = rng.choice(
                [{}, [], {"a": -1}, {"a": 2**33}, {"a": "b"}, {"": 0}, {"a": 0, "b": 0}]
            )
        elif action == 2:
            model["unk_token"] = rng.choice(["nowhere", None, "", 3])
            document["added_tokens"] = []
        elif action == 3:
            pattern = rng.choice(["(a+)+$", "(", "(?<=a*)b", "(x+x+)+y", "", "\\p{Nope}", "a{99999}"])
            document["pre_tokenizer"] = {
                "type": "Split",
                "pattern": {"Regex": pattern},
                "behavior": "Isolated",
                "invert": False,
            }
        else:
            model["merges"] = rng.choice([[["a"]], ["a b c"], [[1, 2]], ["nowhere atall"], {}, None])
    except (ValueError, KeyError, TypeError, OSError, IndexError, RecursionError):
        return
    put(file, json.dumps(document).encode())


CHANGES: tuple[Change, ...] = (
    *(_json_file("config.json", KEYS["config"]),) * 6,
    *(_json_file("tokenizer.json", KEYS["tokenizer"]),) * 3,
    *(_json_file("tokenizer_config.json", KEYS["tokenizer"]),) * 2,
    *(_json_file("generation_config.json", KEYS["generation"], {"max_length": 20}),) * 2,
    _json_file("preprocessor_config.json", KEYS["processor"]),
    _json_file("processor_config.json", KEYS["processor"]),
    _json_file("special_tokens_map.json", KEYS["tokenizer"], {"mask_token": "[MASK]"}),
    _json_file("added_tokens.json", KEYS["tokenizer"], {"x": 3}),
    *(_some_bytes,) * 2,
    *(_weights,) * 4,
    *(_structure,) * 2,
    *(_plant,) * 2,
    _index,
    _adapter,
    *(_tokenizer_of_nowhere,) * 2,
)
