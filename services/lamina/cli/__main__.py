"""`python -m lamina.cli`: the same as `lamina`."""

from __future__ import annotations

import sys

from lamina.cli.entry import main

sys.exit(main())
