"""The parent's side of a study on many hosts: who they are, whether they will do, and what each is told.

All that is known of Dask is in `connect`, `cluster`, `calls` and `messages`; nothing here is imported without
--hosts or --scheduler.
"""
