"""`python -m agentfs`: the command line."""

import sys

from agentfs.cli import main

sys.exit(main())
