"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell starts what runs in its background with SIGINT ignored, and children inherit that; but many tests
# are about what SIGINT does.
signal.signal(signal.SIGINT, signal.default_int_handler)
