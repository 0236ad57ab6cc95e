# One word for each need. `make` alone explains them. Needs nothing but Python 3.11 or newer, and make.
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# A file of tests stays in one process; each process has a database of its own. ARGS="-n 0" for a debugger.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# What runs on SQLite: what needs no database, and what the store has a second implementation for (docs/testing.md).
ON_SQLITE := tests/unit tests/integration/store tests/integration/execution tests/integration/streaming tests/integration/frameworks \
	$(addprefix tests/integration/console/,audit diagnosis privacy search statistics usage) \
	$(wildcard tests/integration/doors/*/test_frameworks.py) \
	$(addprefix tests/journeys/,test_smoke.py test_a_restart_loses_nothing.py test_an_agent_of_a_framework_dies.py)
# The units are those with tests of Redis or PostgreSQL.
ON_STACK := tests/integration tests/journeys $(shell grep -rl 'backend("stack")' tests/unit --include=test_*.py)

# The quick part of the laboratory (lab/README.md): a smoke of its campaigns, and the tests of its tools.
LAB_SMOKE := $(wildcard lab/test_*.py $(foreach each,smoke checker judge report reports page board bending dump history ledger ways proxy broken,lab/*/test_$(each).py))
# A campaign may have no test for one of the backends (pytest's status 5).
OR_NONE := || [ $$? -eq 5 ]

MAKEFLAGS += --no-print-directory
export HOST PORT
# Dozens of processes import the same files: each would compile them anew if none were to keep what it compiled.
unexport DJANGO_SETTINGS_MODULE PYTHONDONTWRITEBYTECODE
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help setup run dev stack restart test test-fast test-stack test-all test-wheel check lint types layers migrations audit openapi docs fmt clean lab-smoke lab-test lab-faults lab-webhooks lab-mutants lab-hostile lab-conformance lab-frameworks lab-bench

help: ## Show this list
	@awk -F ':.*## ' '/^#### / {printf "\n%s\n", substr($$0, 6)} /^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' Makefile

setup: .venv/.test ## Create .venv with everything for running, testing and checking
run: .venv/.run ## Start the host on SQLite at HOST:PORT (default 127.0.0.1:8000); no other server needed
	@exec env PYTHONUNBUFFERED=1 $(BIN)/python manage.py up
dev: .venv/.run ## Like run, for authors of agents: it starts again when Python code changes, and clients see tracebacks
	@exec env PYTHONUNBUFFERED=1 DEBUG=1 $(BIN)/watchfiles --filter python --sigint-timeout 5 "$(BIN)/python manage.py up" $(or $(WATCH),.)
stack: .venv/.run ## Start web, worker, pusher and beat against DATABASE_URL and REDIS_URL; ARGS="-c worker=2" for more
	@: "$${DATABASE_URL:?The stack needs servers of yours: export DATABASE_URL=postgres://a2a:secret@127.0.0.1:5432/a2a}"
	@: "$${REDIS_URL:?The stack needs servers of yours: export REDIS_URL=redis://127.0.0.1:6379/0}"
	@mkdir -p "$${VAR_DIR:-var}" && $(BIN)/python manage.py migrate --no-input --verbosity 0
	@echo "The stack begins: start page http://$(HOST):$(PORT)/, console http://$(HOST):$(PORT)/admin/, agents http://$(HOST):$(PORT)/agents/. Ctrl-C ends it."
	@# honcho kills what has not ended in five seconds
	@exec env PYTHONUNBUFFERED=1 A2A_DRAIN_SECONDS="$${A2A_DRAIN_SECONDS:-3}" PATH="$(CURDIR)/$(BIN):$$PATH" CELERY_BROKER_URL="$${CELERY_BROKER_URL:-$$REDIS_URL}" \
		$(BIN)/honcho -f deploy/Procfile -d . start -p $(PORT) $(ARGS)
restart: .venv/.run ## Replace the workers and web processes of the running stack by the code as it is now
	@$(BIN)/python manage.py restart

test: .venv/.test ## The suite: units, integration, journeys; both parts at once
	@$(BIN)/python -m tests.halves "$(MAKE) -o $< test-stack" "$(MAKE) -o $< test-fast"
test-fast: .venv/.test ## The part of it that needs no servers, on SQLite; TESTS and ARGS go to pytest
	@echo "== tests on SQLite" && TEST_BACKEND=sqlite $(PYTEST) $(or $(TESTS),$(ON_SQLITE)) $(ARGS)
test-stack: .venv/.test ## The part on PostgreSQL, Redis and Celery; servers are found or started
	@echo "== tests on PostgreSQL, Redis and Celery" && TEST_BACKEND=stack $(PYTEST) $(or $(TESTS),$(ON_STACK)) $(ARGS)
test-all: export TEST_THOROUGH = 1
test-all: test lab-test ## The suite with all examples and cases, then the campaigns of the laboratory
test-wheel: .venv/.test ## The suite against the built wheel in an environment of its own; PART=test-fast or test-stack
	@TESTS="$(TESTS)" ARGS="$(ARGS)" $(BIN)/python -m tests.wheel $(or $(PART),test)

check: lint types layers migrations audit ## Everything CI asks for besides the tests
lint: .venv/.test ## Style and common mistakes (ruff), sentences, and the ratchet of lines
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/python -m tests.prose && $(BIN)/python -m tests.ratchet
types: .venv/.test ## Types of code and tests (mypy --strict)
	@$(BIN)/mypy
layers: .venv/.test ## Import layering (import-linter)
	@$(BIN)/lint-imports
migrations: .venv/.test ## No migration is missing
	@$(BIN)/python manage.py makemigrations --check --dry-run
audit: .venv/.test ## Security lint (bandit) and known vulnerabilities of packages (a snapshot, pip-audit)
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive a2a_host a2a_project a2a_console a2a_push a2a_tasks a2a_frameworks a2a_grpc a2a_doors examples manage.py
	@$(BIN)/python -m tests.vulnerabilities
openapi: .venv/.test ## Write the description of the management API that its tests compare with anew
	@$(BIN)/python manage.py spectacular --custom-settings a2a_console.api.schema.DESCRIPTION --format openapi-json --file tests/integration/console/api/golden/openapi.json
docs: .venv/docs/.made ## Write the documentation as a site with a search to var/site; broken links are errors
	@NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --quiet -f deploy/docs/mkdocs.yml && echo "var/site is written. To read it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory var/site 8001"
fmt: .venv/.test ## Format the code and mend what can be mended
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .
clean: ## Remove .venv and caches; keeps var/ (the database)
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

#### The laboratory (lab/README.md)
lab-smoke: .venv/.test ## A smoke of the campaigns, and the tests of the laboratory's tools
	@$(MAKE) -o $< lab-test TESTS="$(LAB_SMOKE)"
lab-test: .venv/.test ## The tests of campaigns: faults, receivers, hostile requests, access, clients, browser, servers; TESTS=lab/browser
	@echo "== lab on SQLite" && TEST_BACKEND=sqlite $(PYTEST) -m "backend" $(or $(TESTS),lab) $(ARGS) $(OR_NONE)
	@echo "== lab on PostgreSQL, Redis and Celery" && TEST_BACKEND=stack $(PYTEST) $(or $(TESTS),lab) $(ARGS) $(OR_NONE)
lab-faults: .venv/.test ## Hours of kills, freezes and outages; writes var/reports/reliability.md
	@$(BIN)/python -m lab.faultlab all $(ARGS)
lab-webhooks: .venv/.test ## Bad receivers, volume, kills; writes var/reports/webhooks.md
	@$(BIN)/python -m lab.farm all $(ARGS)
lab-mutants: .venv/.test ## Small mistakes put into the code, one at a time: how many the suite notices
	@$(BIN)/python -m lab.mutants $(ARGS)
lab-hostile: .venv/.test ## 10,000 hostile requests and more; writes var/reports/security.md
	@$(BIN)/python -m lab.hostile all $(ARGS)
lab-conformance: .venv/.test ## Public conformance kits, given their checkouts (KITS=FOLDER); writes var/reports/conformance.md
	@: "$${KITS:?Name the folder of the kits: make lab-conformance KITS=../kits (docs/clients.md tells how to get them)}"
	@$(BIN)/python -m lab.conformance $(KITS) $(ARGS)
lab-frameworks: .venv/.test ## Agents of frameworks in environments of their own: makes each, and runs its tests; ONLY="adk strands" for some
	@$(BIN)/python -m lab.frameworks $(ONLY)
	@echo "== all of them at one host" && TEST_BACKEND=stack $(PYTEST) -n 0 lab/environments/test_frameworks.py $(OR_NONE)
lab-bench: .venv/.test ## Measure the host beside its peers; ARGS go to the bench
	@$(BIN)/python -m lab.bench $(ARGS)
# The names before there was a laboratory.
OLD := faults webhooks mutants hostile conformance frameworks bench
.PHONY: $(OLD) test-campaigns
$(OLD): %: lab-%
test-campaigns: lab-test

# The stamps: a target is as old as the last complete installation, so a broken one is done again.
.venv/.made:
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here. Install Python 3.11 or newer, or name it: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, and $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "Making .venv" && $(PYTHON) -m venv --clear .venv && touch $@
.venv/.run: .venv/.made requirements.txt
	@echo "Installing requirements.txt" && $(PIP) -r requirements.txt && touch $@
.venv/.test: .venv/.made requirements.txt requirements-sso.txt requirements-otel.txt requirements-prices.txt requirements-test.txt
	@echo "Installing requirements-test.txt (a minute or two)" && $(PIP) -r requirements-test.txt && touch .venv/.run $@
.venv/docs/.made: .venv/.made requirements-docs.txt
	@echo "Installing requirements-docs.txt" && $(PYTHON) -m venv --clear .venv/docs && .venv/docs/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt && touch $@
