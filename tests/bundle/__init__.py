"""Tests of audits and of the patch bundle, offline, on wheels that are made here."""
