"""Executes a plan: workers, workspaces, resuming and undoing. Knows nothing of what the numbers mean."""
