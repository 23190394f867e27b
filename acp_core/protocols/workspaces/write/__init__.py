"""Everything that is written into a run's folder: planned, shown, and done under one lock.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces" and
"Integration Step Protocol".
"""
