"""What earlier runs found, kept on disk so that an unchanged file need not be analysed again.

A cache can only save time: whatever goes wrong with it, the result is the one
that would be computed without it.
"""
