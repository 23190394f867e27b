"""All campaigns by name, in the order in which the long run carries them out."""

from __future__ import annotations

from tests.faults.cut import CUT
from tests.faults.fuzz import FUZZ
from tests.faults.hostile import HOSTILE_TEXT, SCREENS
from tests.faults.limits import LIMITS

EVERY = {each.name: each for each in (CUT, FUZZ, LIMITS, HOSTILE_TEXT, SCREENS)}
