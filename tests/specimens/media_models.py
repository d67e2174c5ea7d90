"""Tiny checkpoints that see or hear, with their real processors, and a picture and a sound made by code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
import transformers as hf
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers

PATCH = 10
ROWS, COLUMNS = 4, 6
_SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
_WORDS = ["what", "is", "in", "the", "picture", "?", "a", "bright", "square"]
_BODY = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 30}
_SEES = {**_BODY, "num_attention_heads": 3, "patch_size": PATCH}


def picture_file(folder: Path, square: tuple[int, int] = (2, 4), name: str = "square.png") -> Path:
    """A picture of 4 x 6 patches, dark and uneven, with one bright square: the patch in that row, column."""
    made = np.random.default_rng(5)
    pixels = made.integers(0, 60, (ROWS * PATCH, COLUMNS * PATCH, 3), dtype=np.uint8)
    row, column = (place * PATCH for place in square)
    pixels[row : row + PATCH, column : column + PATCH] = (250, 240, 120)
    Image.fromarray(pixels).save(folder / name)
    return folder / name


def sound_file(
    folder: Path, seconds: float = 0.5, rate: int = 16000, channels: int = 1, name: str = "tone.wav"
) -> Path:
    """A tone that rises from 300 to 3000 hertz, silent in its second quarter."""
    time = np.arange(int(seconds * rate)) / rate
    tone = 0.5 * np.sin(2 * np.pi * (300 * time + 1350 * time**2 / seconds))
    tone[len(time) // 4 : len(time) // 2] = 0
    soundfile.write(folder / name, np.repeat(tone[:, None], channels, 1), rate)
    return folder / name


def word_tokenizer(*further: str) -> Any:
    """Words of a small vocabulary and the special tokens `further`."""
    words = {word: i for i, word in enumerate((*_SPECIAL, *_WORDS, *further))}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        extra_special_tokens={f"extra{i}": word for i, word in enumerate(further)},
    )


def _vision(**changes: Any) -> dict[str, Any]:
    return {**_SEES, "image_size": (ROWS * PATCH, COLUMNS * PATCH), **changes}


def _text(**changes: Any) -> dict[str, Any]:
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    return {**_BODY, **tokens, "vocab_size": 30, "max_position_embeddings": 64, **changes}


def _size() -> dict[str, int]:
    return {"height": ROWS * PATCH, "width": COLUMNS * PATCH}


def _square() -> dict[str, int]:
    return {"height": 4 * PATCH, "width": 4 * PATCH}


def vit() -> tuple[Any, list[Any]]:
    return hf.ViTModel(hf.ViTConfig(**_vision())), [hf.ViTImageProcessorPil(size=_size())]


def deit() -> tuple[Any, list[Any]]:
    processor = hf.DeiTImageProcessorPil(size=_size(), do_center_crop=False)
    return hf.DeiTModel(hf.DeiTConfig(**_vision())), [processor]


def dinov2() -> tuple[Any, list[Any]]:
    processor = hf.BitImageProcessorPil(size={"shortest_edge": 40}, crop_size=_size())
    config = hf.Dinov2WithRegistersConfig(**_vision(image_size=40, num_register_tokens=3))
    return hf.Dinov2WithRegistersModel(config), [processor]


def dinov3() -> tuple[Any, list[Any]]:
    """Its processor only runs on torchvision; the file is as the hub has it."""
    config = hf.DINOv3ViTConfig(**_vision(num_register_tokens=2))
    settings = {
        "image_processor_type": "DINOv3ViTImageProcessorFast", "do_center_crop": None, "do_resize": True,
        "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "size": _size(),
    }  # fmt: skip
    return hf.DINOv3ViTModel(config), [settings]


def beit() -> tuple[Any, list[Any]]:
    config = hf.BeitConfig(**_vision(image_size=40, use_relative_position_bias=True))
    return hf.BeitModel(config), [hf.BeitImageProcessorPil(size=_square(), do_center_crop=False)]


def yolos() -> tuple[Any, list[Any]]:
    config = hf.YolosConfig(**_vision(num_detection_tokens=5))
    return hf.YolosModel(config), [hf.ViTImageProcessorPil(size=_size())]


def swin() -> tuple[Any, list[Any]]:
    config = hf.SwinConfig(
        image_size=40, patch_size=5, embed_dim=12, depths=[2, 2], num_heads=[2, 4], window_size=4
    )
    return hf.SwinModel(config), [hf.ViTImageProcessorPil(size=_square())]


def clip() -> tuple[Any, list[Any]]:
    config = hf.CLIPConfig(text_config=_text(), vision_config=_vision(image_size=40))
    processor = hf.CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size=40)
    return hf.CLIPModel(config), [hf.CLIPProcessor(processor, word_tokenizer())]


def siglip() -> tuple[Any, list[Any]]:
    config = hf.SiglipConfig(text_config=_text(), vision_config=_vision(image_size=40))
    return hf.SiglipModel(config), [
        hf.SiglipProcessor(hf.SiglipImageProcessorPil(size=_square()), word_tokenizer())
    ]


def llava() -> tuple[Any, list[Any]]:
    tokenizer = word_tokenizer("<image>")
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(**_text(), num_key_value_heads=2),
        vision_config=hf.CLIPVisionConfig(**_vision(image_size=40)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    processor = hf.LlavaProcessor(
        hf.CLIPImageProcessorPil(size={"shortest_edge": 40}, crop_size=40),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    return hf.LlavaForConditionalGeneration(config), [processor]


def paligemma() -> tuple[Any, list[Any]]:
    tokenizer = word_tokenizer("<image>")
    config = hf.PaliGemmaConfig(
        text_config=hf.GemmaConfig(**_text(), num_key_value_heads=2, head_dim=6),
        vision_config=hf.SiglipVisionConfig(**_vision(image_size=40, projection_dim=24)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=24,
    )
    seen = hf.SiglipImageProcessorPil(size=_square())
    seen.image_seq_length = 16
    return hf.PaliGemmaForConditionalGeneration(config), [hf.PaliGemmaProcessor(seen, tokenizer)]


def gemma3() -> tuple[Any, list[Any]]:
    """16 patches that are pooled to 4 tokens."""
    names = ("<image_soft_token>", "<start_of_image>", "<end_of_image>")
    tokenizer = word_tokenizer(*names)
    ids = dict(zip(("image", "boi", "eoi"), names, strict=True))
    tokenizer._set_model_specific_special_tokens({f"{key}_token": name for key, name in ids.items()})
    config = hf.Gemma3Config(
        text_config=hf.Gemma3TextConfig(**_text(), num_key_value_heads=2, head_dim=6, sliding_window=64),
        vision_config=hf.SiglipVisionConfig(**_vision(image_size=40)),
        image_token_index=tokenizer.convert_tokens_to_ids(names[0]),
        boi_token_index=tokenizer.convert_tokens_to_ids(names[1]),
        eoi_token_index=tokenizer.convert_tokens_to_ids(names[2]),
        mm_tokens_per_image=4,
    )
    processor = hf.Gemma3Processor(hf.Gemma3ImageProcessorPil(size=_square()), tokenizer, image_seq_length=4)
    return hf.Gemma3ForConditionalGeneration(config), [processor]


def qwen2_vl() -> tuple[Any, list[Any]]:
    """4 x 6 patches of which 2 x 2 are merged to one token; without torchvision it has no processor."""
    names = ("<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>")
    tokenizer = word_tokenizer(*names)
    image, video, start, end = tokenizer.convert_tokens_to_ids(list(names))
    rope = {"rope_type": "default", "mrope_section": [1, 1, 1], "rope_theta": 10000.0}
    config = hf.Qwen2VLConfig(
        text_config=_text(num_key_value_heads=2, rope_parameters=rope),
        vision_config={"depth": 2, "embed_dim": 24, "num_heads": 3, "hidden_size": 24, "patch_size": PATCH},
        image_token_id=image, video_token_id=video, vision_start_token_id=start, vision_end_token_id=end,
    )  # fmt: skip
    seen = hf.Qwen2VLImageProcessorPil(patch_size=PATCH, size={"shortest_edge": 400, "longest_edge": 4000})
    return hf.Qwen2VLForConditionalGeneration(config), [seen, tokenizer]


def wav2vec2() -> tuple[Any, list[Any]]:
    return hf.Wav2Vec2Model(hf.Wav2Vec2Config(**_hears())), [hf.Wav2Vec2FeatureExtractor()]


def hubert() -> tuple[Any, list[Any]]:
    return hf.HubertModel(hf.HubertConfig(**_hears())), [hf.Wav2Vec2FeatureExtractor()]


def _hears() -> dict[str, Any]:
    """The usual strides, 320 samples in all, with few channels."""
    return {
        **_BODY,
        "conv_dim": (8,) * 7,
        "feat_extract_norm": "layer",
        "num_conv_pos_embeddings": 4,
        "num_conv_pos_embedding_groups": 2,
    }


def whisper_tokenizer() -> Any:
    """The real class, with letters and the words `what`, ` is` and ` in`."""
    steps = [("w", "h"), ("wh", "a"), ("wha", "t"), ("Ġ", "i"), ("Ġi", "s"), ("Ġi", "n")]
    pieces = [*"abcdefghijklmnopqrstuvwxyz?", "Ġ", *("".join(step) for step in steps)]
    spoken = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    words = {piece: i for i, piece in enumerate((*pieces, *spoken))}
    special = {f"extra{i}": name for i, name in enumerate(spoken[1:])}
    return hf.WhisperTokenizer(
        vocab=words, merges=steps, language="en", task="transcribe", extra_special_tokens=special
    )


def whisper() -> tuple[Any, list[Any]]:
    """Hears one second; its encoder has 50 positions."""
    tokenizer = whisper_tokenizer()
    start, end = tokenizer.convert_tokens_to_ids(["<|startoftranscript|>", "<|endoftext|>"])
    config = hf.WhisperConfig(
        vocab_size=len(tokenizer), num_mel_bins=20, d_model=24, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=3, encoder_ffn_dim=30, decoder_ffn_dim=30,
        max_source_positions=50, max_target_positions=220, decoder_start_token_id=start, pad_token_id=end,
        bos_token_id=end, eos_token_id=end, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    hears = hf.WhisperFeatureExtractor(feature_size=20, chunk_length=1)
    return hf.WhisperForConditionalGeneration(config), [hears, tokenizer]


def captioner() -> tuple[Any, list[Any]]:
    """Writes about a picture: a ViT, and a GPT-2 of fewer layers that looks at its patches."""
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    writes = hf.GPT2Config(
        vocab_size=13, n_positions=12, n_embd=24, n_layer=2, n_head=4, n_inner=30,
        add_cross_attention=True, is_decoder=True, **tokens,
    )  # fmt: skip
    sees = hf.ViTConfig(**_vision(num_hidden_layers=3))
    config = hf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(sees, writes)
    config.decoder_start_token_id, config.eos_token_id, config.pad_token_id = 1, 2, 0
    module = hf.VisionEncoderDecoderModel(
        config=config, encoder=hf.ViTModel(sees), decoder=hf.GPT2LMHeadModel(writes)
    )
    return module, [hf.ViTImageProcessorPil(size=_size()), word_tokenizer()]


MODELS: dict[str, Callable[[], tuple[Any, list[Any]]]] = {
    made.__name__: made
    for made in (
        *(vit, deit, dinov2, dinov3, beit, yolos, swin, clip, siglip, llava, paligemma, gemma3, qwen2_vl),
        *(wav2vec2, hubert, whisper, captioner),
    )
}


def save(name: str, folder: Path) -> Path:
    """A seeded, sharpened model of that name in `folder`, with what it reads its inputs with."""
    torch.manual_seed(3)
    module, readers = MODELS[name]()
    with torch.no_grad():
        for path, weight in module.named_parameters():
            if weight.ndim == 2:
                asks = any(part in path for part in ("q_proj", "k_proj", "query", "key", "qkv"))
                weight.normal_(std=(2 if asks else 1) * weight.shape[-1] ** -0.5)
    module.save_pretrained(folder)
    for reader in readers:
        if isinstance(reader, dict):
            (folder / "preprocessor_config.json").write_text(json.dumps(reader))
        else:
            reader.save_pretrained(folder)
    return folder
