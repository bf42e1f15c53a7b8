"""The entry point: from ``sys.argv`` to an exit code.

Importing this module imports neither Hydra nor anything heavier, so that the help is quick.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from rlgov.cli.arguments import Arguments, parse_arguments
from rlgov.cli.command import Command
from rlgov.cli.registry import COMMANDS, load, split_command
from rlgov.errors import RlgovError

INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143


def entry() -> None:
    """What the ``rlgov`` script calls; never returns."""
    for stream in (sys.stdout, sys.stderr):
        # A file name in another encoding must not stop a run that only prints it.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, terminate)
    sys.exit(main(sys.argv[1:]))


def terminate(*_: object) -> NoReturn:
    """End as an exception would, so that whatever must be given back is given back."""
    raise SystemExit(TERMINATED)


def main(words: Sequence[str]) -> int:
    """Run a command line and return its exit code. A user's mistake ends in one message."""
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except RlgovError as error:
        if os.environ.get("RLGOV_DEBUG") == "1":
            raise
        print(f"rlgov: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("rlgov: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception:
        # A fault of ours must not pass for the job's own exit code 1.
        traceback.print_exc()
        print("rlgov: this is a bug of rlgov's own; please report it", file=sys.stderr)
        return RlgovError.exit_code
    return code


def _dispatch(words: Sequence[str]) -> int:
    from rlgov.cli import helptext

    if not words or words[0] in ("-h", "--help", "help"):
        print(helptext.overview())
        return 0
    if words[0] == "--version":
        print(helptext.version())
        return 0
    name, rest = split_command(words)
    if name not in COMMANDS:
        print(helptext.family_help(name))
        return 0
    command = load(name)
    arguments = parse_arguments(command, rest)
    if arguments.show_help:
        print(helptext.command_help(command, arguments.config_dirs))
        return 0
    return _run(command, arguments)


def _run(command: Command, arguments: Arguments) -> int:
    # Only here, since importing Hydra takes longer than the whole help.
    from rlgov.cli.compose import Composed, Composer
    from rlgov.cli.execute import config_text, make_folder, run_once
    from rlgov.cli.multirun import run_sweep
    from rlgov.files import RunFolder

    composer = Composer(command, arguments.config_dirs)
    runs = composer.compose(arguments.overrides, sweeping=arguments.multirun)
    if arguments.print_config:
        print("---\n".join(config_text(run) for run in runs), end="")
        return 0
    folder = make_folder(command, runs)

    def run_one(composed: Composed, child: RunFolder) -> int:
        return run_once(command, composed, arguments, child)

    try:
        if arguments.multirun:
            return run_sweep(command, runs, folder, run_one)
        return run_one(runs[0], folder)
    finally:
        folder.close()
