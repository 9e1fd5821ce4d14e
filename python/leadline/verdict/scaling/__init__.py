"""How the rate of a work grows with its threads, and the law that this follows."""
