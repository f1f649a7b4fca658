"""Tests of the drill without NIXL: its parts by themselves, and with processes that only play the sides of a tree."""
