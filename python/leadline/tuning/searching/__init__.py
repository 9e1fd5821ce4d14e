"""A search among values of settings: the space, who proposes, and the states of proposals."""
