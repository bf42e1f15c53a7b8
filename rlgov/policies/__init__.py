"""Policies: the baselines, the oracle and bundles of trained ones, without torch."""

from rlgov.policies.base import Policy, PolicyContext
from rlgov.policies.registry import POLICIES, load_policy

__all__ = ["POLICIES", "Policy", "PolicyContext", "load_policy"]
