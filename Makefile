# Every target sets up .venv by itself. Needed: make, and python3 >= 3.11 with its venv module, or uv. No root.
#
#   make conform   every scheme, reference against kernels, on the OpenCL device that pip installs
#   make test      the tests
#   make lint      ruff, mypy --strict, pyright
#   make docs      the site, into build/docs/html: opens from disk, no network
#   make bench     every benchmark: kernels next to a copy and to other libraries, growth, roofline (benchmarks/README.md)
#
# ARGS="..." is passed on: make conform ARGS="--quick --only 'e2m1.*'"

PYTHON ?= python3
VENV := .venv
comma := ,
BIN := $(VENV)/bin
ARGS ?=
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export UV_PYTHON_DOWNLOADS := never

.PHONY: conform test lint docs bench clean

conform: $(VENV)/.run
	$(BIN)/quantspec run $(ARGS)

test: $(VENV)/.test
	$(BIN)/pytest -n auto $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright

docs: $(VENV)/.docs
	$(BIN)/python -m quantspec_conformance.site build/docs

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/bench.py $(ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.python:
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --python ">=3.11" $(VENV) || { \
	    echo "make: uv finds no Python 3.11 or newer; install one (for example python3.11)" >&2; exit 1; }; \
	else \
	  command -v $(PYTHON) >/dev/null 2>&1 || { \
	    echo "make: $(PYTHON) is missing; install Python 3.11 or newer, or uv" >&2; exit 1; }; \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "make: $$($(PYTHON) --version) is too old; 3.11 or newer is needed (make PYTHON=python3.12)" >&2; exit 1; }; \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -q --upgrade "pip>=25.1" || { \
	    echo "make: $(PYTHON) -m venv failed; on Debian and Ubuntu: apt install python3-venv, or install uv" >&2; \
	    rm -rf $(VENV); exit 1; }; \
	fi
	@touch $@

# 1: extras of the project, 2: what to install besides it
define install
	@echo "make: installing into $(VENV) (first time only)"
	@if command -v uv >/dev/null 2>&1; then \
	  VIRTUAL_ENV=$(CURDIR)/$(VENV) uv pip install --quiet $(2) -e ".[$(1)]"; \
	else \
	  $(BIN)/python -m pip install -q $(2) -e ".[$(1)]"; \
	fi
	@touch $@
endef

$(VENV)/.run: $(VENV)/.python pyproject.toml
	$(call install,cl-cpu$(comma)harness,)

$(VENV)/.docs: $(VENV)/.python pyproject.toml
	$(call install,harness$(comma)docs,)

$(VENV)/.test: $(VENV)/.python pyproject.toml
	$(call install,cl-cpu$(comma)harness$(comma)docs,--group test --group bench)

$(VENV)/.bench: $(VENV)/.python pyproject.toml
	$(call install,cl-cpu$(comma)harness,--group bench)

$(VENV)/.lint: $(VENV)/.python pyproject.toml
	$(call install,cl-cpu$(comma)harness$(comma)docs,--group test --group bench --group lint)
