"""Collaborations that several hosts share: stores, and what a folder does with one."""
