"""The validator of the folder protocol: small rules over what was read from one folder.

`checks` holds the rules, each a function from `acp_core.protocols.folder.read.facts.Facts` to
findings; `codes` says of every code why it exists and what to do about it; `unrecoverable_log` is
about logs that can never become valid again.
Source: folder protocol specification, "Validation". Standard library only.
"""
