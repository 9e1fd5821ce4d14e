"""How each kind of part of a section is shown, a kind a file, and the walk along the sections."""
