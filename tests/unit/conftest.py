"""What all unit tests share: a property is about values, never about how long the host took to try one."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
