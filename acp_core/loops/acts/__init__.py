"""What a person can do about participants' loops: start, hand over, nudge, stop.

Described once, in `table`; forms, `acp act` and the commands come from there. Each says beforehand
what exactly will be run or ended, and afterwards whether that is so.
"""
