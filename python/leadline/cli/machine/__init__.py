"""The verbs about this machine, a file each, and what they share."""
