"""Tables that only one kind of work has, a Parquet file a trial beside those that all have."""
