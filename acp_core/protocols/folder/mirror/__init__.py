"""Mirrors in a store: collaborations of other protocols, which one host conducts and others see.

Source: section 10 of the design of shared stores: what leaves is a list, a mirror authorises nothing,
and who asks must be proven where it counts.
"""
