"""Tests of what each format says and whether its readers take it."""
