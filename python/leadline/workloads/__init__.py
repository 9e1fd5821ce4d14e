"""The kinds of work, a folder each. Kinds do not know each other."""
