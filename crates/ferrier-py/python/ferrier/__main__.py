"""The command: `python -m ferrier ...`, or `ferrier ...`."""

import signal
import sys

from ferrier import _ferrier


def main() -> None:
    """Runs the command with the arguments of this process, and exits with its code."""
    # The command is native: Python would only note the signal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_ferrier.command(["ferrier", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
