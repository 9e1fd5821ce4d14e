"""What was to stay within a bound: searches for rates under a latency, and requirements."""
