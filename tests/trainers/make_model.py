"""Makes a tiny Qwen3-VL with random weights that vLLM and LLaMA-Factory can load.

usage: make_model.py OUT TEXT_FILE...

The tokenizer is trained on the text files. A few tokens are whole lines of a reply, and their embeddings are set so
that the model almost always writes one of three valid replies: without that, a random model never takes an action.
"""

import json
import math
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3VLConfig, Qwen3VLForConditionalGeneration

SPECIAL_TOKENS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
HIDDEN = 64
CERTAINTY = 25.0  # logit of the wanted token; the others are near 0

CHAT_TEMPLATE = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content -%}
{% if part.type in ("image", "image_url") or "image" in part %}<|vision_start|><|image_pad|><|vision_end|>\
{% elif "text" in part %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor -%}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

REPLY_START = "Memory: nothing so far\nProgress: everything remains\nIntention: look at the page\n"


def call(sentence: str, arguments: dict) -> str:
    body = json.dumps({"name": "computer_use", "arguments": arguments})
    return f"Action: {sentence}\n<tool_call>\n{body}\n</tool_call>"


# How likely each reply is at temperature 1. At a temperature near 0 the model always scrolls.
REPLIES = {
    call("Scroll down.", {"action": "scroll", "direction": "down"}): 0.6,
    call("Click the first link.", {"action": "left_click", "coordinate": [60, 120]}): 0.2,
    call("Answer the question.", {"action": "answer", "text": "It is 42."}): 0.2,
}


def make_tokenizer(texts: list[str], replies: list[str], chat_template: str) -> PreTrainedTokenizerFast:
    """Trains a tokenizer in which each of the replies is a token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in replies])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=131072,
        additional_special_tokens=SPECIAL_TOKENS[1:],
        chat_template=chat_template,
    )


def make_config(tokenizer: PreTrainedTokenizerFast) -> Qwen3VLConfig:
    number = tokenizer.convert_tokens_to_ids
    return Qwen3VLConfig(
        text_config=dict(
            vocab_size=len(tokenizer),
            hidden_size=HIDDEN,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            max_position_embeddings=32768,
            rope_parameters=dict(rope_type="default", rope_theta=5e6, mrope_section=[6, 5, 5], mrope_interleaved=True),
            eos_token_id=number("<|im_end|>"),
            pad_token_id=number("<|endoftext|>"),
        ),
        vision_config=dict(
            depth=2,
            hidden_size=HIDDEN,
            intermediate_size=128,
            num_heads=2,
            out_hidden_size=HIDDEN,
            deepstack_visual_indexes=[0],
        ),
        image_token_id=number("<|image_pad|>"),
        video_token_id=number("<|video_pad|>"),
        vision_start_token_id=number("<|vision_start|>"),
        vision_end_token_id=number("<|vision_end|>"),
        eos_token_id=number("<|im_end|>"),
        pad_token_id=number("<|endoftext|>"),
    )


def teach(model, tokenizer: PreTrainedTokenizerFast, following: dict[str, dict[str, float]]) -> None:
    """Sets embeddings so that each of some tokens leads to the given next tokens with their shares: one axis per token."""

    def number(text: str) -> int:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert len(ids) == 1, (text, ids)
        return ids[0]

    root = math.sqrt(HIDDEN)
    with torch.no_grad():
        embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        for axis, (token, choices) in enumerate(following.items()):
            embedding[number(token)] = 0
            embedding[number(token), axis] = root
            for choice, share in choices.items():
                head[number(choice), axis] = (CERTAINTY + math.log(share)) / root


def teach_replies(model: Qwen3VLForConditionalGeneration, tokenizer: PreTrainedTokenizerFast) -> None:
    following = {"\n": {REPLY_START: 1.0}, REPLY_START: REPLIES}
    teach(model, tokenizer, following | {text: {"<|im_end|>": 1.0} for text in REPLIES})


def write_processor(out: Path) -> None:
    common = dict(
        patch_size=16,
        temporal_patch_size=2,
        merge_size=2,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        do_resize=True,
        do_rescale=True,
        do_normalize=True,
        do_convert_rgb=True,
        rescale_factor=1 / 255,
        resample=3,
        size={"shortest_edge": 65536, "longest_edge": 16777216},
    )
    image = {**common, "image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"}
    video = {**common, "video_processor_type": "Qwen3VLVideoProcessor", "processor_class": "Qwen3VLProcessor"}
    (out / "preprocessor_config.json").write_text(json.dumps(image, indent=2))
    (out / "video_preprocessor_config.json").write_text(json.dumps(video, indent=2))
    (out / "chat_template.json").write_text(json.dumps({"chat_template": CHAT_TEMPLATE}))


def main() -> None:
    out = Path(sys.argv[1])
    texts = [Path(name).read_text() for name in sys.argv[2:]]
    torch.manual_seed(0)
    tokenizer = make_tokenizer(texts, [REPLY_START, *REPLIES], CHAT_TEMPLATE)
    model = Qwen3VLForConditionalGeneration(make_config(tokenizer)).float()
    teach_replies(model, tokenizer)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    settings = json.loads((out / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    (out / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))
    write_processor(out)
    print(f"{sum(weight.numel() for weight in model.parameters())} weights, {len(tokenizer)} tokens")


if __name__ == "__main__":
    main()
