"""What `acp` prints and writes for collaborations of every protocol, kept byte by byte.

Nothing here imports what it tests: everything is asked of `acp` in its own process. Each folder
below ``data`` is a protocol, each file in it a state of `states`. ``python -m tests.golden``
makes them anew and prints what became different.
"""
