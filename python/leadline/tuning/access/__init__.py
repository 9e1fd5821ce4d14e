"""How settings are read, set and put back: one file a kind of access, what they share in `interface`."""
