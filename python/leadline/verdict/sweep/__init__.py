"""What a sweep found: its knee, what its plateau is made of, and how both are said and shown."""
