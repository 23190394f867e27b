"""How many examples the long form of a property looks at."""

from __future__ import annotations

import os

MANY = int(os.environ.get("ACP_EXAMPLES", "100"))
"""As many as ``ACP_EXAMPLES`` says; 2,000 for each protocol take about an hour."""
