"""What a proof of settings found: whether they help, by which mechanism, and what else they do."""
