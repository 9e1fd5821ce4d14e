"""The verbs that explain: why a cell is not faster, and what it should have been."""
