"""The first screen of a report: question, answer, one table, doubts, what to do next."""
