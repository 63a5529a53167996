"""Makes a tiny random text model in memory whose replies are known tool calls, each a single token."""

import json
from pathlib import Path

import torch
from make_model import HIDDEN, make_tokenizer, teach
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

ROOT = Path(__file__).resolve().parents[2]


def tool_call(name: str, **arguments) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def make_text_model(
    replies: dict[str, float], chat_template: str
) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """Returns a model that writes one of the replies with its probability, and then the end token."""
    torch.manual_seed(0)
    texts = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]
    tokenizer = make_tokenizer(texts, list(replies), chat_template)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=32768,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    model = Qwen3ForCausalLM(config).float()
    teach(model, tokenizer, {"\n": replies} | {reply: {tokenizer.eos_token: 1.0} for reply in replies})
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer
