"""Runs the command line for `python -m agentfs`."""

import sys

from agentfs.cli import main

sys.exit(main())
