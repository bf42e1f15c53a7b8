"""Every error that rlgov raises on purpose.

::

    RlgovError                 125  anything below; the root to catch
    ├── ConfigError              2  a key, value or file of the user's that cannot be used
    ├── BoardError               3  a board that is missing, unreadable or refuses a write
    │   ├── NotSupportedError    3  the board is there but lacks what was asked of it
    │   └── LeaseError           4  the board is held by another governor, or cannot be given back
    ├── JobError               125  the job could not be started or followed
    ├── PolicyError              5  a bundle that is damaged or does not fit this board
    ├── MeterError             125  a figure that cannot be computed from what was measured
    └── TraceError               6  a trace or profile that cannot be read or written

The number is the exit code that the command line ends with; 130 and 143 are Ctrl-C and SIGTERM,
141 a closed pipe, 1 a crash of ours. ``rlgov run`` ends with the job's own code once the job has
started; 125 is what ``env`` and ``docker run`` use for a failed launcher.
"""

from __future__ import annotations


class RlgovError(Exception):
    """Root of every error raised on purpose."""

    exit_code = 125


class ConfigError(RlgovError):
    """The user asked for something that cannot be: the message says what can."""

    exit_code = 2


class BoardError(RlgovError):
    """A board is missing, unreadable or refused a write."""

    exit_code = 3


class NotSupportedError(BoardError):
    """The board is there, but lacks the knob, sensor or mode that was asked for."""


class LeaseError(BoardError):
    """The board is held by another governor, or could not be given back."""

    exit_code = 4


class JobError(RlgovError):
    """The job could not be started or followed."""


class PolicyError(RlgovError):
    """A policy bundle is damaged, or does not fit this board."""

    exit_code = 5


class MeterError(RlgovError):
    """A figure cannot be computed from what was measured."""


class TraceError(RlgovError):
    """A trace or profile cannot be read or written."""

    exit_code = 6
