"""The verbs that read results, a file each, and what they share."""
