"""`python -m gpuwaste.cli`: the command where no script of that name is installed."""

import sys

from gpuwaste.cli.main import main

sys.exit(main())
