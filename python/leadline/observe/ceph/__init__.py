"""What a cluster says of itself, asked for and read."""
