"""Explores the thread schedules of a checkout's real backend code."""
