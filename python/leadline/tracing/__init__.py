"""Following other programs' I/O: what each way of tracing can see, and the tables it gives."""
