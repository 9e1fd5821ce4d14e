"""The verbs that measure, a file each, and what they share."""
