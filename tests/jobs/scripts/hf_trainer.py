"""Hugging Face Trainer: accumulation, evaluation and checkpoints in between."""

import sys

import torch
from fingerprint import report
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(5)


class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.rows = torch.randint(0, 90, (count, 12))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row[0] % 2}


config = BertConfig(
    vocab_size=90, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
)
trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        output_dir=sys.argv[1],
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=2,
        eval_strategy="steps",
        eval_steps=3,
        save_steps=4,
        logging_steps=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    ),
    train_dataset=Rows(40),
    eval_dataset=Rows(16),
)
trainer.train()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
print("losses", losses)
report(trainer.model, trainer.state.global_step)
