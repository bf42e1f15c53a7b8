"""Boards: what can be turned and read, and the lease that gives every clock back."""
