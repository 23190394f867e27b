"""Tests tell what somebody does with acp and what they then see."""
