"""The figures of documents: read, checked against each other, shown beside what was measured."""
