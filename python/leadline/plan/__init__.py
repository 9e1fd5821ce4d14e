"""Every trial with every default and its reason, before anything runs."""
