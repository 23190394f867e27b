"""From what was read to what is shown: the parts of a folder collaboration's Snapshot.

Here raw text becomes text that is safe to show; nothing here reads files.
"""
