"""What simple models say of storage: lines to hold figures against, never figures themselves.

Each function names its source and where it stops being true. Units are base units: bytes, seconds, 1/s.
"""
