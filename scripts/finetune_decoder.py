"""Fine-tune a small GPT-NeoX-like decoder (the Pythia architecture) to continue docstrings.

An ordinary Hugging Face Trainer script. The text is the standard library's own docstrings, the
tokenizer is trained on the spot and the model starts from its config, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import math
import random
import sysconfig
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import (
    DataCollatorForLanguageModeling,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)


def read_docstrings() -> list[str]:
    """Every docstring of the standard library's modules, classes and functions."""
    root = Path(sysconfig.get_path("stdlib"))
    found: dict[str, None] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if "site-packages" in parts or "test" in parts or "tests" in parts:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node)
                if text and len(text) >= 80:
                    found.setdefault(text)
    return list(found)


def make_tokenizer(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|pad|>", "<|endoftext|>"],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|endoftext|>"
    )


def weights_sha256(model: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def continuation(model, tokenizer, prompt: str) -> str:
    model.eval()
    ids = torch.tensor([tokenizer(prompt)["input_ids"]], device=model.device)
    with torch.no_grad():
        out = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=24,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
        )
    return " ".join(tokenizer.decode(out[0], skip_special_tokens=True).split())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=360, help="optimizer steps")
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--seq-len", type=int, default=128, help="longest sequence, in tokens")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-dir", help="keep the trained model here")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    set_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    texts = read_docstrings()
    random.Random(args.seed).shuffle(texts)
    tokenizer = make_tokenizer(texts, args.vocabulary)
    examples = [
        {"input_ids": tokenizer(text + "<|endoftext|>")["input_ids"][: args.seq_len]}
        for text in texts
    ]
    held_out = min(128, len(examples) // 5)
    model = GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=len(tokenizer),
            hidden_size=args.hidden,
            num_hidden_layers=args.layers,
            num_attention_heads=max(1, args.hidden // 32),
            intermediate_size=4 * args.hidden,
            max_position_embeddings=max(512, args.seq_len),
            bos_token_id=tokenizer.eos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            use_cache=False,
        )
    )
    print(f"{len(examples)} docstrings, {len(tokenizer)} tokens in the vocabulary")
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=args.output_dir or scratch,
                max_steps=args.steps,
                per_device_train_batch_size=args.batch_size,
                per_device_eval_batch_size=16,
                learning_rate=2e-3,
                warmup_steps=max(1, args.steps // 20),
                logging_steps=50,
                save_strategy="no",
                prediction_loss_only=True,
                report_to=[],
                seed=args.seed,
                use_cpu=not torch.cuda.is_available(),
                disable_tqdm=True,
                dataloader_num_workers=0,
            ),
            train_dataset=examples[held_out:],
            eval_dataset=examples[:held_out],
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
        )
        before = math.exp(trainer.evaluate()["eval_loss"])
        trainer.train()
        after = math.exp(trainer.evaluate()["eval_loss"])
        if args.output_dir:
            trainer.save_model(args.output_dir)
    print(f"continuation: {continuation(model, tokenizer, 'Return the')}")
    print(f"weights sha256 {weights_sha256(model)}")
    print(f"perplexity {before:.1f} before, {after:.1f} after {args.steps} steps")


if __name__ == "__main__":
    main()
