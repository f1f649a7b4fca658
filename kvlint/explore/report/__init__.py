"""What an exploration found, for people: program words, the diagram of a schedule, and the page.

It knows results alone (`kvlint.explore.results`); the exploration itself is not loaded for it.
"""
