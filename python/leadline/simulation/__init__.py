"""What a cluster that nobody has yet would do: predicted rates with intervals, and what bounds them."""
