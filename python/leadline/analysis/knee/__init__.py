"""Finds the knee of a rate that saturates over one or two options, from a few of the cells of their grid."""
