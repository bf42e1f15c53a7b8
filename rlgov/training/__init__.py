"""Learning: the only room that imports torch."""
