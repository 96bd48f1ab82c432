# One command for each thing people do here. `make` alone lists them.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHONS ?= python3 python3.13 python3.12 python3.11
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
# By file, in the order of collection (tests/conftest.py): what a test leaves in a shared server is met only by the rest of its file.
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-unit coverage check fmt crash crash-kafka crash-nats crash-rabbitmq failover screenshots generate bench-gateway bench-kafka bench-nats bench-rabbitmq bench-redis bench-service bench-sqlite bench-store clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with all extras and the tools of the project

run: setup ## Run the demo; ARGS="--seconds 20" ends it by itself
	@$(BIN)/redrive demo $(ARGS)

test: check ## Check everything, then run all tests
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-unit: setup ## Run the quick tests: no network, seconds
	@$(BIN)/python -m pytest $(PARALLEL) src tests/unit $(ARGS)

coverage: setup ## Run all tests and report what they reach; takes more than twice as long
	@$(BIN)/python -m pytest $(PARALLEL) --cov $(ARGS)

check: setup ## Check format, lint, types and who imports whom
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

fmt: setup ## Format the code and mend what can be mended by machine
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

crash: setup ## Kill workers for a long time and account for every message
	@$(BIN)/python -m tests.crash $(ARGS)

crash-kafka: setup ## Kill workers and brokers on Kafka, on one and on three: the short form, and its planted bugs
	@REDRIVE_CRASH_KAFKA=1 $(BIN)/python -m pytest tests/crash/test_kafka.py tests/crash/test_kafka_cluster.py tests/crash/test_kafka_controls.py $(ARGS)

crash-nats: setup ## Kill workers and the server on NATS: the short form, and its planted bugs
	@REDRIVE_CRASH_NATS=1 $(BIN)/python -m pytest tests/crash/test_nats.py tests/crash/test_nats_controls.py tests/properties/test_subscription_machine.py $(ARGS)

crash-rabbitmq: setup ## Kill workers and the server on RabbitMQ: the short form, and its planted bugs
	@REDRIVE_CRASH_RABBITMQ=1 $(BIN)/python -m pytest tests/crash/test_rabbitmq.py tests/crash/test_rabbitmq_controls.py tests/properties/test_subscription_machine.py $(ARGS)

failover: setup ## Kill Redis primaries under load, and count what is lost by durability
	@$(BIN)/python -m tests.redis.failover $(ARGS)

screenshots: setup ## Take a picture of every page of the console, in both themes and two widths
	@$(BIN)/python -m tests.browser.pictures $(ARGS)

bench-kafka: setup ## Measure the Kafka broker beside a hand-written loop and its peers
	@$(BIN)/python -m benchmarks.kafka $(ARGS)

bench-gateway: setup ## Measure the LLM gateway beside a bare HTTP client and its peers
	@$(BIN)/python -m benchmarks.gateway $(ARGS)

bench-nats: setup ## Measure the NATS broker beside a hand-written loop and its peers
	@$(BIN)/python -m benchmarks.nats $(ARGS)

bench-rabbitmq: setup ## Measure the RabbitMQ broker beside a hand-written loop and its peers
	@$(BIN)/python -m benchmarks.rabbitmq $(ARGS)

generate: setup ## Write the rules, alerts and dashboards of deploy/ from their tables
	@$(BIN)/python -m deploy.generator $(ARGS)

bench-redis: setup ## Measure the Redis broker beside a hand-written loop and its peers
	@$(BIN)/python -m benchmarks.redis $(ARGS)

bench-service: setup ## Measure the service at a million letters, on SQLite and PostgreSQL
	@$(BIN)/python -m benchmarks.service $(ARGS)

bench-sqlite: setup ## Measure the SQLite broker beside a hand-written loop
	@$(BIN)/python -m benchmarks.sqlite $(ARGS)

bench-store: setup ## Measure the letter store at up to a million letters
	@$(BIN)/python -m benchmarks.store $(ARGS)

clean: ## Remove everything that was made here, .venv included
	@rm -rf $(VENV) dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A half-made or outdated .venv has no working pip or an old Python: it is made anew.
$(READY): pyproject.toml constraints.txt
	@$(BIN)/python -c 'import pip' 2>/dev/null && $(BIN)/python $(NEW_ENOUGH) || $(MAKE) --no-print-directory $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

.PHONY: $(VENV)
$(VENV):
	@for python in $(PYTHONS); do \
		if $$python $(NEW_ENOUGH) 2>/dev/null; then \
			echo "Creating $(VENV) with $$($$python --version) ..."; \
			$$python -m venv --clear $(VENV) && exit 0; \
			echo "$$python cannot create a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "Redrive needs Python 3.11 or newer; none of these is: $(PYTHONS)" >&2; \
	exit 1
