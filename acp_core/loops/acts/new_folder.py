"""Starting programs in a folder that another act makes: chosen ones, or those that ran before.

Handed in to the protocols' acts that make folders (`acp_core.protocols.kit.starting.Starter`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from acp_core.agents import presets, registry
from acp_core.agents.place import place
from acp_core.agents.presets import ANY, Preset, PresetError
from acp_core.loops import launch
from acp_core.loops import spec as specs
from acp_core.loops.acts.options import Chosen, all_presets, spec_of
from acp_core.loops.acts.plans import carry_out, preview_of
from acp_core.loops.acts.programs import installed, installed_first, missing, renewed
from acp_core.loops.spec import Spec
from acp_core.model import Outcome, Preview
from acp_core.person.paths import key_of
from acp_core.protocols.kit.diagnosis import safe_id

Wanted = list[tuple[Spec, Preset]]
_USUAL = Chosen(
    "", "", False, False, None, specs.Restart.ON_FAILURE.value, None, None, None, None, []
)


class NewFolderStarter:
    """Starts programs for the participants of a new folder."""

    def choices(self) -> Mapping[str, Any]:
        """The programs to choose from, those that are installed first; the first is the usual one.

        Raises:
            Refused: the person's settings cannot be read.
        """
        known = {name: each for name, each in all_presets().items() if name != ANY}
        return {
            "choices": tuple(installed_first(known)),
            "labels": missing(known),
            "bare": next(iter(installed(known)), None),
        }

    def preview(self, folder: str, programs: Mapping[str, str]) -> Preview:
        """What would be started in a folder that does not exist yet, by participant.

        Raises:
            Refused: there is no such program.
        """
        return _preview(_chosen(folder, programs))

    def start(self, folder: str, programs: Mapping[str, str]) -> Outcome:
        """Start them.

        Raises:
            Refused: there is no such program.
        """
        return _start(_chosen(folder, programs))

    def ran(self, folder: str) -> Sequence[str]:
        """The participants whose programs ran in a folder."""
        return [safe_id(spec.participant) for spec, _ in _ran(folder, folder)]

    def preview_same(self, before: str, folder: str) -> Preview:
        """What would be started in a folder that does not exist yet: what ran in another."""
        return _preview(_ran(before, folder))

    def start_same(self, before: str, folder: str) -> Outcome:
        """Start what ran in another folder."""
        return _start(_ran(before, folder))


STARTER = NewFolderStarter()


def _chosen(folder: str, programs: Mapping[str, str]) -> Wanted:
    known = all_presets()
    return [
        spec_of(folder, name, presets.named(program, known), _USUAL)
        for name, program in programs.items()
    ]


def _ran(before: str, folder: str) -> Wanted:
    """What this account's loops of one folder would be asked to do in another."""
    old, new, found = key_of(before), key_of(folder), []
    for loop in registry.runners(old):
        spec = specs.load(place(old, loop.participant))
        if spec is None:
            continue
        workdir = new if spec.workdir == spec.folder else spec.workdir
        spec = replace(renewed(spec, loop), folder=new, workdir=workdir)
        try:
            found.append((spec, spec.resolved()))
        except PresetError:  # a preset of another version of acp: it is started by hand
            continue
    return found


def _preview(wanted: Wanted) -> Preview:
    plans = [launch.plan(*each, ask_version=False, exists=False) for each in wanted]
    return preview_of(plans, ())


def _start(wanted: Wanted) -> Outcome:
    return carry_out([launch.plan(*each) for each in wanted], again=False)
