"""What a cycle's files held at a time from which they are not known, as far as they tell it.

The state keeps when its entries came; timeline, logs and copies of earlier versions tell the rest.
What came later is left out, and what nobody wrote down is not made up: it stays not recorded.
"""
