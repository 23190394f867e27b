"""Delegations in a turn result: work that a role hands to others. Their form and their limits.

acp checks them; runs that delegate are carried on by the existing program.
"""

from __future__ import annotations

import re

from acp_core.protocols.governed.schema import Object, items, obj, objects, strings

MOST = 5
_ID, _ROLE = re.compile(r"del-\d{3}\Z"), re.compile(r"[a-z0-9_-]+\Z")
_DEC = re.compile(r"DEC-[0-9]+\Z")


def check_form(result: Object) -> list[str]:
    """What is wrong with the fields of the delegations."""
    given = result.get("delegations")
    if not isinstance(given, list):
        return []
    errors: list[str] = []
    for i, item in enumerate(given):
        name = f"delegations[{i}]"
        if not isinstance(item, dict):
            errors.append(f"{name} must be an object.")
            continue
        if not _matches(_ID, item.get("id")):
            errors.append(f"{name}.id must match pattern del-NNN.")
        if not _matches(_ROLE, item.get("to_role")):
            errors.append(f"{name}.to_role must match pattern ^[a-z0-9_-]+$.")
        if not _filled(item.get("charter")):
            errors.append(f"{name}.charter must be a non-empty string.")
        contract = item.get("acceptance_contract")
        if not isinstance(contract, list) or not contract or not all(map(_filled, contract)):
            errors.append(
                f"{name}.acceptance_contract must be a non-empty array of non-empty strings."
            )
        if "required_decision_ids" in item:
            errors += _decisions(name, item["required_decision_ids"])
    return errors


def _decisions(name: str, value: object) -> list[str]:
    where = f"{name}.required_decision_ids"
    if not isinstance(value, list) or not value:
        return [f"{where} must be a non-empty array."]
    errors = [
        f"{where}[{i}] must match pattern DEC-NNN."
        for i, id in enumerate(value)
        if not _matches(_DEC, id)
    ]
    known = [id for id in value if isinstance(id, str)]
    if len(set(known)) != len(known):
        errors.append(f"{where} names a decision twice.")
    return errors


def check_delegations(result: Object, state: Object, config: Object) -> list[str]:
    """What well-formed delegations do against the rules of the run."""
    given = items(result, "delegations")
    if not given:
        return []
    errors: list[str] = []
    if len(given) > MOST:
        errors.append(f"delegations names {len(given)} delegations; at most {MOST} are allowed.")
    if result.get("run_completion_request") is True:
        errors.append("delegations and run_completion_request are mutually exclusive.")
    if obj(state, "pending_delegation_review"):
        errors.append("A turn that reviews delegations cannot delegate.")
    ids = [item["id"] for item in given]
    errors += [f'delegation id "{id}" is used twice.' for id in dict.fromkeys(ids)
               if ids.count(id) > 1]  # fmt: skip
    roles = objects(config.get("roles"))
    routing = objects(config.get("routing")).get(str(state.get("phase")), {})
    allowed = strings(routing, "allowed_next_roles")
    for item in given:
        to = item["to_role"]
        if to == result["role"]:
            errors.append(f'delegation "{item["id"]}" goes to the delegating role "{to}" itself.')
        elif to not in roles:
            errors.append(f'delegation "{item["id"]}" goes to "{to}", which is not a defined role.')
        elif allowed and to not in allowed:
            errors.append(
                f'delegation "{item["id"]}" goes to "{to}", which is not in the'
                f' allowed_next_roles for phase "{state.get("phase")}".'
            )
    return errors


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.match(value))


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
