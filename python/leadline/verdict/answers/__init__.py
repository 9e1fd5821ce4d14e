"""The answer to a study's question: one sentence or two, the figures they rest on, and what to do next."""
