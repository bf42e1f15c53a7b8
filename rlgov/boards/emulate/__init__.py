"""A board that is not there, as the kernel would show it: what ``rlgov emulate`` mounts."""
