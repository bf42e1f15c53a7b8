"""Policies: bundles and their NumPy actor, baselines, the oracle."""
