"""What verdicts make and reports show besides cells: sections, the charts in them, how all is laid out."""
