"""Verbs that change settings, or write out what to change."""
