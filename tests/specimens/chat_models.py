"""A small Llama whose tokenizer begins every text with a token, and chat templates in four styles.

They are written after ChatML, Llama 3, Qwen (a system message of its own, tools, thinking that is left out of
earlier answers) and Mistral (no place for a system message alone, roles that alternate).
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL = (
    "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|eot_id|>", "[INST]", "[/INST]",
)  # fmt: skip
SENTENCES = (
    "You are a helpful assistant. You answer briefly.",
    "Who opened the door? The cat opened the door, and the dog saw it.",
    "system user assistant tool Is it open? Yes, it is. thinking <think> </think>",
)

CHATML = """{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] +
'<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"""

LLAMA3 = """{{- bos_token }}{%- if tools %}{{- '<|start_header_id|>system<|end_header_id|>\\n\\nTools: ' +
(tools | tojson) + '<|eot_id|>' }}{%- endif %}{%- for message in messages %}{{- '<|start_header_id|>' +
message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"""

QWEN = """{%- if messages[0].role != 'system' %}{{-
'<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}{%- if tools %}{{- '<|im_start|>tools\\n' + (tools | tojson) + '<|im_end|>\\n' }}{%- endif %}
{%- set last = namespace(user=0) %}
{%- for message in messages %}{%- if message.role == 'user' %}{%- set last.user = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}{%- set content = message.content or '' %}
{%- if message.role == 'assistant' and message.reasoning_content and loop.index0 > last.user %}
{%- set content = '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' + content %}{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' + content }}
{%- for call in message.tool_calls or [] %}{{-
'<tool_call>' + (call | tojson) + '</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

MISTRAL = """{{- bos_token }}{%- set system = '' %}{%- set turns = messages %}
{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] + '\\n\\n' %}
{%- set turns = messages[1:] %}{%- endif %}
{%- if not turns %}{{- raise_exception('A user message has to come first') }}{%- endif %}
{%- for message in turns %}{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{%- endif %}
{%- if message['role'] == 'user' %}{%- set before = system if loop.last else '' %}
{{- '[INST] ' + before + message['content'] + '[/INST]' }}
{%- else %}{{- ' ' + message['content'] + eos_token }}{%- endif %}{%- endfor %}"""

TEMPLATES = {"chatml": CHATML, "llama3": LLAMA3, "qwen": QWEN, "mistral": MISTRAL}


def chat_tokenizer(template: str | None) -> Any:
    """Bytes and a few merges; `<s>` in front of every text, unless special tokens are left out."""
    made = Tokenizer(models.BPE(unk_token=None))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([*SENTENCES] * 4, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    extra = [each for each in SPECIAL if each not in ("<s>", "</s>", "<unk>")]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        additional_special_tokens=extra,
    )
    tokenizer.chat_template = template
    return tokenizer


def chat_model(folder: Path, template: str | None, **changes: Any) -> Path:
    """A seeded Llama of 3 layers, 4 heads on 2 key heads, with `template`, or without any."""
    tokenizer = chat_tokenizer(template)
    torch.manual_seed(5)
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 40,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "initializer_range": 0.4,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        **changes,
    }
    LlamaForCausalLM(LlamaConfig(**settings)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
