"""Sharing runs and policies between machines."""
