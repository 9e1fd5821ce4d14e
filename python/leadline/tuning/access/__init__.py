"""How settings are read, set and put back: one file a kind of access, the face that they share in `face`."""
