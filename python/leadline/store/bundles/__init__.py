"""Bundles: the rows of many finished trials in one file a table, so that readers open few files.

They are only ever derived, and each trial's own files stay the truth: what is wrong with a bundle, or is not
as it was, is passed over, and the trials' own files are read instead.
"""
