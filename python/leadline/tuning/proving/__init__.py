"""Settings that a study proves: what was asked, what is in force, and the states of its trials."""
