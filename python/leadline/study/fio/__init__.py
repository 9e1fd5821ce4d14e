"""fio's job files, read as studies."""
