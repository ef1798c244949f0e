"""Where the process begins: a Ctrl-C while the rest is still being imported ends it without a traceback."""

from __future__ import annotations

import os
import signal


def main() -> int:
    """The command `lamina`."""
    os.umask(0o077)  # what it writes is somebody's memory: for its owner alone, whatever the shell's habit is
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else whoever started us ignores it
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lamina.cli.main import main as run

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()
