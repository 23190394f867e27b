"""The check of shared stores: hosts that act at once while everything fails, and what must hold.

`planning` makes a plan of a seed, `running` carries it out with real processes and stores, and
`judging` looks at what came of it.
"""
