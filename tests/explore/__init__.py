"""Tests of the exploration of thread schedules."""
