"""The Gymnasium environment that a policy drives, with the guard inside."""
