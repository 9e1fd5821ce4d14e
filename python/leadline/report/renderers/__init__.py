"""One output a file: terminal, HTML, Markdown, CSV, JSON and others'."""
