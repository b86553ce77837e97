# Each target works alone on a fresh clone: it makes .venv, installs what it needs and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Compiled files are kept, whatever the shell says: without them each of the hundreds of processes of
# the tests compiles the package, and each pytest rewrites all assertions.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK := $(INSTALL) --require-hashes --no-deps --only-binary :all:
# The hashes in locks/ are of the files for Python 3.11 on Linux x86_64. Elsewhere versions alone are
# pinned, by constraints.txt.
LOCKED = $(shell $(BIN)/python -c "import platform as p, sys; print('yes' * ((p.system(), \
	p.machine(), sys.implementation.name, sys.version_info[:2]) == ('Linux', 'x86_64', 'cpython', (3, 11))))")
# $(1): a lock, $(2): what to install. Once all of a lock is there, pip has nothing left to choose.
# Of torch, the small build without CUDA is taken where the index has it.
define install
$(if $(LOCKED),$(LOCK) -r locks/$(1).txt)
$(if $(LOCKED),$(if $(filter core docs,$(1)),,$(LOCK) -r locks/torch-cpu.txt || $(LOCK) -r locks/torch-pypi.txt))
$(INSTALL) -c constraints.txt $(if $(LOCKED),--no-build-isolation) -e '$(2)'
endef

# Three files at a time on two cores, because many tests wait for servers and browsers; with four all
# took longer. Small products are slower in several threads.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: demo demo-train test docs fuzz clean

demo: $(VENV)/.installed-core
	$(BIN)/sightline demo -o sightline-demo

demo-train: $(VENV)/.installed-train
	$(BIN)/python examples/train_textbooks.py

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# Beside mypy, which takes one core: what all processes of the tests would compile at once.
	$(BIN)/python tests/command_server.py & \
	$(BIN)/python -m pytest --collect-only > /dev/null & \
	$(BIN)/mypy && wait
	$(PYTEST)

# The documentation as a site, in site/; a link that leads nowhere fails.
docs: $(VENV)/.installed-docs
	PATH=$(CURDIR)/$(BIN):$$PATH NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

# Generated requests at the service, for three minutes.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python scripts/fuzz_service.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The stamps are renewed when the dependencies change.
$(VENV)/.installed-core: pyproject.toml constraints.txt locks/core.txt | $(VENV)/bin/python
	$(call install,core,.)
	touch $@

$(VENV)/.installed-%: pyproject.toml constraints.txt locks/%.txt | $(VENV)/bin/python
	$(call install,$*,.[$*])
	touch $@

clean:
	rm -rf $(VENV) sightline-demo demo-train-output site
