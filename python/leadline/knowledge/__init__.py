"""What leadline knows, as data: one way to read rules, one evaluator, one formatter, each threshold once."""
