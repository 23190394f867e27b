"""Measurements of acp by acp: every figure beside a baseline of the same run.

Programs run as people run them: as processes, in real pseudo-terminals of 120 x 40. What is
compared is measured in turn, so that a busy machine slows both.
"""
