# Every target says what it does, where its logs are, and what was achieved. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

python := .venv/bin/python
pytest := $(python) -m pytest
lab := $(python) -m tests.cluster
# The tests use a node of their own, beside the one that `make demo` and `make lab-up` leave up.
test_node := llamapool-test

# No target is a file.
.PHONY: $(shell grep -oE '^[a-z-]+:' $(MAKEFILE_LIST) | tr -d :)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

setup:
	@tools/setup.sh

lock: setup ## Write requirements/ anew from pyproject.toml
	@compile=".venv/bin/pip-compile --quiet --upgrade --strip-extras --generate-hashes --allow-unsafe --no-header
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links pyproject.toml"
	$$compile --output-file requirements/operator.txt
	$$compile --extra dev --constraint requirements/operator.txt --output-file requirements/dev.txt
	echo "lock: requirements/operator.txt and requirements/dev.txt are up to date"

demo: setup ## Main job, end to end, on a real node made here
	@started=$$SECONDS
	$(lab) up
	$(lab) images
	$(lab) load
	$(lab) exec -- $(python) -m tests.demo
	echo "demo: done in $$((SECONDS - started)) s"

lint: setup ## Format, lint, strict types, import layers, shell
	@.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	$(python) -m mypy
	.venv/bin/lint-imports --no-cache
	echo "lint: clean"

test-unit: setup ## Fast tests, under a minute
	@$(pytest) tests/unit --timeout 30
	echo "test-unit: passed"

test-pool: setup ## The pool library: plain, ASan + UBSan, TSan, clang-tidy
	@images/llama-server/pool/test.sh all
	echo "test-pool: passed"

test-oracle: setup ## The quantity parser against apimachinery's own
	@$(pytest) tests/oracle
	echo "test-oracle: passed"

test-server: setup ## The server as a whole beside upstream's, both compiled here: answers, bounds, sizes (quick ones)
	@$(python) -m tests.bench.builds upstream llamapool
	$(pytest) images/llama-server/tests tests/server -m 'not long'
	echo "test-server: passed"

test-soak: setup ## Long conversations under 2 GiB on a real node: make test-soak, or make test-soak CASE=resized
	@$(python) -m tests.bench.builds upstream
	$(lab) up --name $(test_node)
	trap '$(lab) down --name $(test_node)' EXIT
	$(lab) images
	$(lab) load --name $(test_node)
	$(lab) exec --name $(test_node) -- $(pytest) tests/soak -k "$${CASE:-test}"
	echo "test-soak: passed; figures are in build/soak/"

test-node: setup ## Contract, end-to-end and upgrade tests on a real node, the node's own, downloads
	@$(lab) up --name $(test_node)
	trap '$(lab) down --name $(test_node)' EXIT
	$(lab) images
	$(lab) load --name $(test_node)
	$(lab) exec --name $(test_node) -- $(pytest) tests/contract tests/e2e
	$(lab) exec --name $(test_node) -- $(pytest) tests/upgrade
	$(pytest) tests/lab tests/fetch
	echo "test-node: passed"

test-monitoring: setup ## Dashboards and alerts with a real Prometheus on a real node (15 min)
	@$(lab) prometheus
	$(lab) up --name $(test_node)
	trap '$(lab) down --name $(test_node)' EXIT
	$(lab) images
	$(lab) load --name $(test_node)
	$(lab) exec --name $(test_node) -- $(pytest) tests/monitoring
	echo "test-monitoring: passed"

dashboards: setup ## Write the chart's dashboards anew from dashboards/
	@$(python) -m dashboards

test: setup ## Lint, unit, pool, server and node tests
	@started=$$SECONDS
	$(MAKE) lint
	$(MAKE) test-unit
	$(MAKE) test-oracle
	$(MAKE) test-pool
	$(MAKE) test-server
	$(MAKE) test-node
	echo "test: lint, unit, pool, server, contract, end-to-end and node tests passed in $$((SECONDS - started)) s"

test-long: setup ## What takes minutes each: storms of faults, a million simulated steps, autoscaling, the docs, monitoring (90 min)
	@$(pytest) tests/simulator --timeout 3600
	slow_pool=$$($(lab) images llama-server --build-arg TEST_HIT_DELAY_MILLISECONDS=1200 | tail -1)
	$(lab) up --audit --name $(test_node)
	trap '$(lab) down --name $(test_node)' EXIT
	$(lab) images
	$(lab) load --name $(test_node)
	$(lab) add-image --name $(test_node) $${slow_pool#* }
	LLAMAPOOL_SLOW_POOL_IMAGE=$${slow_pool% *} \
	  $(lab) exec --name $(test_node) -- $(pytest) tests/long tests/storm --timeout 3600
	$(lab) down --name $(test_node)
	$(MAKE) test-monitoring
	$(MAKE) test-soak
	$(python) -m tests.bench.builds upstream llamapool
	$(pytest) images/llama-server/tests -m long
	echo "test-long: passed"

docs: setup ## Write the generated parts of docs/ anew: the HybridModel's reference, pictures of the status page and of tuning
	@$(python) tools/hybridmodel_reference.py
	$(python) -m tests.screenshots
	$(python) -m tests.simulator.day

images: setup ## Build both images from their Dockerfiles
	@$(lab) images

lab-up: setup ## Start the test node
	@$(lab) up

lab-down: setup ## Stop the test node and check that nothing of it is left
	@$(lab) down

lab-status: setup ## What of the test node is up
	@$(lab) status

lab-shell: setup ## A shell with kubectl and helm pointed at the test node
	@$(lab) shell

lab-exec: setup ## One command there: make lab-exec CMD='kubectl get pods -A'
	@$(lab) exec --command "$${CMD:?say what to run: make lab-exec CMD='kubectl get pods -A'}"

bench-pool: setup ## Measure the pool against upstream, preloaded allocators and the published design (75 min)
	@$(python) -m tests.bench.pool
	$(python) -m tests.bench.picture
	echo "bench-pool: build/bench/pool.json and docs/bench-pool.svg are written"

bench-plan: setup ## Hold the memory plan against real servers under real limits (25 min)
	@$(python) -m tests.bench.plan
	echo "bench-plan: build/bench/plan.json is written"

bench-tuning: setup ## Provoke 50 kills on a real node, and measure how each is answered (15 min)
	@$(lab) up --name $(test_node)
	trap '$(lab) down --name $(test_node)' EXIT
	$(lab) images
	$(lab) load --name $(test_node)
	$(lab) exec --name $(test_node) -- $(python) -m tests.bench.tuning
	echo "bench-tuning: build/bench/tuning.json is written"

bench-operator: setup ## Measure the operator: a fleet's creation, resizes, and what it costs at rest (8 min)
	@$(lab) up --audit --name $(test_node)
	trap '$(lab) down --name $(test_node)' EXIT
	$(lab) images
	$(lab) load --name $(test_node)
	$(lab) exec --name $(test_node) -- $(python) -m tests.bench.operator

clean: ## Remove what was built in the tree (the cache outside it stays)
	@rm -rf build dist .venv
