"""The last stage of checking a turn result: objections, who comes next, what is asked for.

Source: governed protocol specification, "Overview" (mandatory objections) and "Phase model".
"""

from __future__ import annotations

from acp_core.protocols.governed.schema import REVIEW_ONLY, Object, obj, objects, strings


def check_protocol(result: Object, state: Object, config: Object, warnings: list[str]) -> list[str]:
    """What a well-formed turn result does against the rules of the run."""
    errors: list[str] = []
    role = result["role"]
    if not result["objections"] and must_object(config, role):
        if obj(config, "rules").get("mandatory_objections") is True:
            errors.append(f'Protocol violation: role "{role}" must raise at least one objection.')
        else:
            errors.append(
                f'Protocol violation: role "{role}" has review_only authority and must raise at'
                " least one objection (challenge requirement)."
            )
    routing, phase = objects(config.get("routing")), str(state.get("phase"))
    allowed = strings(routing.get(phase, {}), "allowed_next_roles")
    proposed = result["proposed_next_role"]
    if allowed and proposed != "human" and proposed not in allowed:
        errors.append(
            f'proposed_next_role "{proposed}" is not in the allowed_next_roles for phase "{phase}".'
        )
    errors += _transition(result, tuple(routing), phase)
    if result["status"] == "needs_human" and not result.get("needs_human_reason"):
        warnings.append('status is "needs_human" but needs_human_reason is empty.')
    return errors


def must_object(config: Object, role: object) -> bool:
    """Whether a role must raise at least one objection: all, or those that only review."""
    rules = obj(config, "rules")
    authority = objects(config.get("roles")).get(str(role), {}).get("write_authority")
    reviews = authority == REVIEW_ONLY and rules.get("challenge_required") is not False
    return rules.get("mandatory_objections") is True or reviews


def _transition(result: Object, phases: tuple[str, ...], phase: str) -> list[str]:
    asked = result.get("phase_transition_request")
    errors: list[str] = []
    if asked is not None and phases:
        named = f'phase_transition_request "{asked}"'
        place = phases.index(phase) if phase in phases else -1
        if asked not in phases:
            errors.append(f"{named} is not a defined phase in routing.")
        elif place == len(phases) - 1:
            errors.append(
                f'{named} is invalid in final phase "{phase}"; use run_completion_request instead.'
            )
        elif asked != phases[place + 1]:
            errors.append(
                f'{named} is invalid from phase "{phase}"; next phase is "{phases[place + 1]}".'
            )
    if asked is not None and result.get("run_completion_request") is True:
        errors.append(
            "run_completion_request and phase_transition_request are mutually exclusive — set"
            " one or neither, not both."
        )
    return errors
