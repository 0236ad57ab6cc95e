"""The settings of HTTP/2: a client's, as far as the protocol knows them, and ours, without what h2 makes of them too early."""

from __future__ import annotations

from h2.settings import SettingCodes, Settings

__all__ = ["OurSettings", "PeerSettings"]

KNOWN = frozenset(SettingCodes)
#: As many streams as there are numbers.
ANY = 2**31


class PeerSettings(Settings):
    """h2 keeps every number it is told, up to 54 MB a connection, and walks through all of them at each frame; unknown ones are to be ignored (RFC 9113 §6.5.2)."""

    def __setitem__(self, key: SettingCodes | int, value: int) -> None:
        if key in KNOWN:
            super().__setitem__(key, value)


class OurSettings(Settings):
    """h2 ends the connection with one stream more than we allow, but a client cannot know how many those are before it has read so: each one too many is to be refused by itself (RFC 9113 §5.1.2)."""

    @property  # type: ignore[misc] # nobody sets it
    def max_concurrent_streams(self) -> int:
        """What h2 goes by; clients are told the number that was set."""
        return ANY
