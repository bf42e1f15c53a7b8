"""A reinforcement-learning governor for fine-tuning on embedded GPUs."""

__version__ = "0.1.0"
