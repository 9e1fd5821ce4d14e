"""What the numbers of blocks allow: means, intervals, comparisons of many, drifts and shifts."""
