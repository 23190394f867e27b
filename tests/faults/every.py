"""All campaigns by name, in the order in which the long run carries them out."""

from __future__ import annotations

from tests.faults.checkpoints import CHECKPOINT
from tests.faults.clocks import CLOCKS
from tests.faults.cut import CUT
from tests.faults.fleets import FLEET
from tests.faults.fuzz import FUZZ
from tests.faults.hostile import HOSTILE_TEXT, SCREENS
from tests.faults.kills import ERRORS_EVERYWHERE, KILLS
from tests.faults.limits import LIMITS
from tests.faults.modelled import MODELS
from tests.faults.power import POWER
from tests.faults.starting import STARTING
from tests.faults.straced import STRACED
from tests.faults.together import MIXED, RANDOM_KILLS
from tests.stores.check.campaigns import SHARED_GIT, SHARED_POSTGRES

EVERY = {
    each.name: each
    for each in (
        KILLS, ERRORS_EVERYWHERE, POWER, STRACED, RANDOM_KILLS, STARTING, MIXED, CUT, CLOCKS, MODELS, FUZZ,
        HOSTILE_TEXT, SCREENS, LIMITS, CHECKPOINT, FLEET, SHARED_GIT, SHARED_POSTGRES,
    )
}  # fmt: skip
