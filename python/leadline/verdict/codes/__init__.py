"""The validity codes: the catalogue, and the rules that fire them."""
