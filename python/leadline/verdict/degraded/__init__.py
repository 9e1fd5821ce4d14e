"""Studies that are to be measured while their cluster is not clean: in which state each trial was."""
