"""Traces as reports show them: sections, their tables and charts, and the document of `show --json`."""
