"""Tests of loading a backend, on a small tree that is made here."""
