"""A study on many hosts at once: every trial on each of them, begun at one instant, and joined here."""
