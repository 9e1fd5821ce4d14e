"""leadline: how fast a shared file system is for your work, why not faster, and the proof.

Importing the package is cheap on purpose: every command pays for it.
"""
