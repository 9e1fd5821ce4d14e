"""Verbs that change a system, or say how it would be changed."""
