"""Pure functions from tables to tables: nothing here reads a file, judges, or prints."""
