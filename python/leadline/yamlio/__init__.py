"""What people write: YAML with the place of each value, values with units, and what is wrong with them."""
