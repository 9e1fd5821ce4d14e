"""What hosts and clusters say of themselves. Nothing here measures or changes anything."""
