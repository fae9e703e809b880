"""Settings of the whole suite: hypothesis draws the same examples every time and does not watch the clock."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
