"""What a search of settings found: its proposals, and the proof of its winner."""
