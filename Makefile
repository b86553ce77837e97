# Each target works alone on a fresh clone: it makes .venv, installs what it needs and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo demo-train test fuzz clean

demo: $(VENV)/.installed-core
	$(BIN)/sightline demo -o demo-output

demo-train: $(VENV)/.installed-train
	$(BIN)/python examples/train_textbooks.py

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

# Generated requests at the service, for three minutes.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python scripts/fuzz_service.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The stamps are renewed when the dependencies change.
$(VENV)/.installed-core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e .
	touch $@

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) demo-output demo-train-output
