"""What can be wrong with a block that is verified: the words for it, and what to look at."""

from __future__ import annotations

WRONG = {
    "lost": "what was there before an acknowledged write is still there",
    "torn": "a part of one write arrived",
    "misplaced": "data of another place in these files is there",
    "foreign": "data that this run never wrote there is there",
    "zeroed": "zeros are there",
    "flipped": "some bytes changed",
    "stale": "a cache showed an old writing; the new one came later, or is there by another way",
}
REMEDIES = {
    "lost": "look for evicted clients, servers that failed over, caches without power protection",
    "torn": "look for what ended in the middle of a write: clients, servers, caches without power protection",
    "misplaced": "suspect firmware, memory or the mapping of blocks; trust nothing there before it is known",
    "foreign": "look whether something else writes to these files; else as for misplaced blocks",
    "zeroed": "look for truncated or sparse objects, discarded blocks and thin volumes without space",
    "flipped": "scrub the storage, and test the memory of this host and of the servers",
    "stale": "expect it where this way promises no more than close-to-open; else shorten its caches",
}
