"""`leadline check`: is every part of a storage what it should be? Facts, and what is expected of them."""
