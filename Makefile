# All of CI, in the environment that you are in.
.PHONY: check lint types test format golden

check: lint types test

lint:
	ruff check .
	ruff format --check .

types:
	pyright

test:
	pytest -n auto

# Not part of the check: what a developer runs before it.
format:
	ruff check --fix .
	ruff format .

# Writes the golden files; read the diff before you commit it.
golden:
	pytest --update-golden
