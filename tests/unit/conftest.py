"""What all unit tests share: what a property is tried with, and that it is never about the host's speed.

`make test` tries the same values at each run, so that a change is judged by what it changed. The night draws
new ones, and keeps what failed below `.hypothesis`; write such a value into the test as an `@example`.
"""

import os

from hypothesis import settings

settings.register_profile("merge", deadline=None, derandomize=True, database=None)
settings.register_profile("night", deadline=None, derandomize=False, print_blob=True, max_examples=1000)
settings.load_profile("night" if "LEADLINE_ALL_TESTS" in os.environ else "merge")
