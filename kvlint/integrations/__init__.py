"""Where other tools take kvlint in: flake8 and LibCST's codemod runner."""
