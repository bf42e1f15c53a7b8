"""Fine-tune a small BERT-like encoder to tell which package a docstring comes from.

An ordinary Hugging Face Trainer script. The text is the standard library's own docstrings, the
tokenizer is trained on the spot and the model starts from its config, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import random
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def read_docstrings() -> list[tuple[str, str]]:
    """(package, docstring) of every module, class and function of the standard library."""
    root = Path(sysconfig.get_path("stdlib"))
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if "site-packages" in parts or "test" in parts or "tests" in parts:
            continue
        package = parts[0].removesuffix(".py")
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node)
                if text and len(text) >= 40:
                    found.setdefault(text, package)
    return [(package, text) for text, package in found.items()]


def make_tokenizer(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    # Byte-level BPE, since training a WordPiece vocabulary gives another one on each run.
    tokenizer = Tokenizer(BPE(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)
    trainer = BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def make_data(classes: int, seed: int) -> tuple[list[tuple[str, str]], list[str]]:
    pairs = read_docstrings()
    names = [name for name, _ in Counter(name for name, _ in pairs).most_common(classes)]
    kept = [(name, text) for name, text in pairs if name in names]
    random.Random(seed).shuffle(kept)
    return kept, sorted(names)


def encode(pairs, names, tokenizer, seq_len):
    return [
        {
            "input_ids": tokenizer(text, truncation=True, max_length=seq_len)["input_ids"],
            "labels": names.index(name),
        }
        for name, text in pairs
    ]


def accuracy(prediction) -> dict[str, float]:
    guessed = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((guessed == prediction.label_ids).mean())}


def weights_sha256(model: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=360, help="optimizer steps")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seq-len", type=int, default=96, help="longest sequence, in tokens")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=3000)
    parser.add_argument("--classes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-dir", help="keep the trained model here")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    set_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    pairs, names = make_data(args.classes, args.seed)
    tokenizer = make_tokenizer([text for _, text in pairs], args.vocabulary)
    examples = encode(pairs, names, tokenizer, args.seq_len)
    held_out = min(256, len(examples) // 5)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=args.hidden,
            num_hidden_layers=args.layers,
            num_attention_heads=max(1, args.hidden // 32),
            intermediate_size=4 * args.hidden,
            max_position_embeddings=max(512, args.seq_len),
            num_labels=len(names),
        )
    )
    print(f"{len(examples)} docstrings of {len(names)} packages, {len(tokenizer)} known tokens")
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=args.output_dir or scratch,
                max_steps=args.steps,
                per_device_train_batch_size=args.batch_size,
                per_device_eval_batch_size=32,
                learning_rate=1e-3,
                warmup_steps=max(1, args.steps // 20),
                logging_steps=50,
                save_strategy="no",
                report_to=[],
                seed=args.seed,
                use_cpu=not torch.cuda.is_available(),
                disable_tqdm=True,
                dataloader_num_workers=0,
            ),
            train_dataset=examples[held_out:],
            eval_dataset=examples[:held_out],
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_metrics=accuracy,
        )
        before = trainer.evaluate()["eval_accuracy"]
        trainer.train()
        after = trainer.evaluate()["eval_accuracy"]
        if args.output_dir:
            trainer.save_model(args.output_dir)
    print(f"weights sha256 {weights_sha256(model)}")
    print(f"accuracy {before:.4f} before, {after:.4f} after {args.steps} steps")


if __name__ == "__main__":
    main()
