"""From one way to mount to another, as a plan for a person: what to write, in which order.

Nothing here changes a system: it reads the present mount and prints.
"""
