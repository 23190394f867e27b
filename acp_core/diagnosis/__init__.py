"""Why is it stuck, and what to do: the engine, and the causes that lie in participants' loops.

What only a protocol can know (its log, its documents, its gates) it says itself, in
`acp_core.protocols.contract.Collaboration.causes`.
"""
