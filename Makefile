# All of CI, in the environment that you are in.
.PHONY: check lint types test docs format golden

check: lint types test docs

lint:
	ruff check .
	ruff format --check .

types:
	pyright

test:
	pytest -n auto

docs:
	mkdocs build --quiet --strict

# Not part of the check: what a developer runs before it.
format:
	ruff check --fix .
	ruff format .

# Writes the golden files; read the diff before you commit it.
golden:
	pytest --update-golden
