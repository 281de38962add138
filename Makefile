# gpuwaste: `make` prints this help; every target works from a clean clone.
.DEFAULT_GOAL := help
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
NATIVE := build/native
PLUGINS := build/plugins
WORKERS ?= 6
# Installed programs are compiled: a figure must not time the compiler where a shell has set this.
export PYTHONDONTWRITEBYTECODE =

help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml requirements.lock
	@tools/make-venv

venv: $(STAMP) ## create .venv with the locked dependencies

packages: ## install the Debian packages that the real-cluster tests need (root, Debian 12)
	@tools/install-debian-packages

browser-tools: ## axe-core for tests/browser, into build/browser (npm)
	@tools/browser-tools

native: $(STAMP) ## build the simulated NVML and its load program
	@$(MAKE) --no-print-directory -C native OUT=$(CURDIR)/$(NATIVE) PYTHON=$(CURDIR)/$(PY)

plugins: ## build the submit plugins for the installed Slurm (SLURM_INCLUDE for another release's headers)
	@$(MAKE) --no-print-directory -C plugins/job_submit OUT=$(CURDIR)/$(PLUGINS) c lua

rpm: $(STAMP) packages ## the RPMs and their source in build/rpm, checked with rpmlint (docs/how-to/install.md)
	@$(PY) -m tools.rpm

lint: $(STAMP) ## ruff, format check
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: $(STAMP) ## mypy --strict
	@$(VENV)/bin/mypy

layers: $(STAMP) ## import-linter
	@$(VENV)/bin/lint-imports

audit: ## known weaknesses of the locked packages (network to pypi.org)
	@tools/audit

demo: venv ## a real Slurm cluster on loopback, three users, reports, pages (DEMO_KEEP=1: it stays up); else a recording (exit code 5)
	@RECORD='$(RECORD)' tools/demo

data: $(STAMP) ## fetch the public logs that some tests read (network; into GPUWASTE_DATA, or data/)
	@$(PY) -m tools.data $(DATA)

docs: $(STAMP) ## write docs/reference and etc/gpuwaste.toml from the code
	@tools/generate-docs

docs-check: $(STAMP) ## the generated pages are of today; links, commands, keys and metrics of all pages are real
	@tools/generate-docs --check
	@$(VENV)/bin/pytest -q -m "not cluster" tests/docs

unit: $(STAMP) ## the tests without servers, root, Debian packages and builds, but for the longest: a minute
	@NUMBA_DISABLE_JIT=1 $(VENV)/bin/pytest -q -n auto --dist loadscope --hypothesis-profile unit -m "not long" --durations 10 tests/unit

test: venv packages native plugins browser-tools ## all tests, the real cluster included, WORKERS at the same time
	@$(PY) -m tools.rpm --for-tests
	@WORKERS=$(WORKERS) tools/run-tests

figures-tests: $(STAMP) ## what the last `make test` took, into docs/figures.md and tests/durations.json
	@$(PY) -m tools.durations

faults: venv packages native plugins ## every fault of the submit path on a real slurmctld; writes what it measured to docs
	@rm -f docs/faults-measured.json
	@GPUWASTE_FAULTS_OUT=$(CURDIR)/docs/faults-measured.json $(VENV)/bin/pytest tests/system/test_submit_faults.py
	@tools/generate-docs

matrix: venv packages native ## the submit path on Slurm 22.05, 24.11 and 26.05 (root; trees in build/matrix or MATRIX_DIR)
	@$(PY) -m tools.matrix

scorecard: $(STAMP) ## write docs/scorecard.md from the public logs in ../shared/data or data/ (many minutes)
	@$(PY) -m tools.scorecard

bench-unit: $(STAMP) ## what `make unit` takes: seconds, CPU seconds, the slowest tests; beside one process
	@$(PY) -m bench.unit

bench-report: $(STAMP) ## time of gpuwaste report with a million jobs in the hub
	@$(PY) -m bench.report

bench-now: $(STAMP) ## GET /v1/now with 2,000 nodes: milliseconds, bytes, 50 readers at once
	@$(PY) -m bench.now

bench-pages: $(STAMP) ## the hub's pages: milliseconds with 50 readers, bytes, paint in Chromium, beside JSON (PAGES="--home DIR")
	@$(PY) -m bench.pages $(PAGES)

bench-startup: $(STAMP) ## start-up of the command: --help and a report, beside python3 and sacct
	@$(PY) -m bench.startup

bench-analytics: $(STAMP) ## each view over 16 million jobs: ms, bytes; beside pandas and Plotly (pypi; ANALYTICS="--jobs 2000000")
	@$(PY) -m bench.analytics $(ANALYTICS)

bench-table: $(STAMP) ## a million jobs from the store to a table and to the state of predictions: seconds, memory
	@$(PY) -m bench.table

bench-ingest: $(STAMP) ## hours rows per second that the hub takes
	@$(PY) -m bench.ingest

bench-codec: $(STAMP) ## a batch of hours read with msgspec and with pydantic: microseconds a row, imports
	@$(PY) -m bench.codec

bench-agent: $(STAMP) native ## what the agent costs a node: CPU, memory, bytes a day, scrapes
	@$(PY) -m bench.agent

bench-curves: $(STAMP) native ## a job's samples from a node, 8 GPUs x 24 h: seconds, bytes, the agent's memory
	@$(PY) -m bench.curves

bench-features: $(STAMP) ## features: jobs per second, us for an update and a vector, bytes of a key
	@$(PY) -m bench.features

bench-attribution: $(STAMP) native ## samples on the right job, by layout, on real clusters (ROUNDS, SEED)
	@$(PY) -m bench.attribution

bench-predict: $(STAMP) ## all targets' inference for one job: latency, load time, memory, beside XGBoost
	@$(PY) -m bench.predict

baseline: $(STAMP) ## write the bundle of day one anew: after a change of the features
	@$(PY) -m tools.baseline src/gpuwaste/predict/baseline

bench-train: $(STAMP) ## gpuwaste train with its search on 100,000 jobs: seconds by stage, memory
	@$(PY) -m bench.train

bench-policy: $(STAMP) ## microseconds of a policy's decision, submissions per second of a replay
	@$(PY) -m bench.policy

bench-advisor: $(STAMP) ## verdicts per second of the advisor, the time of an exchange, memory with 100,000 users
	@$(PY) -m bench.advisor

bench-history: $(STAMP) ## rows of sacct per second that `gpuwaste history import` takes
	@$(PY) -m bench.history

bench-sim: $(STAMP) ## schedulers: jobs simulated a second, bytes a job (SIM="--pyss DIR" for a peer beside)
	@$(PY) -m bench.sim $(SIM)

bench-waits: $(STAMP) ## waits predicted on logs in the order of time: coverage, pinball loss, three baselines (WAITS="--every 4")
	@$(PY) -m bench.waits $(WAITS)

bench-double-gaussian: $(STAMP) ## FCFS and conservative backfill on the double Gaussian, a distribution over 300 seeds
	@$(PY) -m bench.double_gaussian

bench-wrappers: $(STAMP) ## the study of wrappers: its sweeps (ten minutes), then docs/explanation/wrappers.md, its pictures, and the table of plans
	@$(PY) -m bench.wrappers

bench-plan: $(STAMP) ## when five candidates start: seconds with 5,000 queued jobs on 2,000 nodes (PLAN="--jobs 500")
	@$(PY) -m bench.plan $(PLAN)

bench-events: $(STAMP) ## events handed over: catch-up a second, milliseconds to a webhook and a Kafka broker (EVENTS="--jobs 100000")
	@$(PY) -m bench.events $(EVENTS)

bench-engine: $(STAMP) ## the simulator's schedulers beside an ensemble of a real slurmctld (an hour; ENGINE="--hours 1 --runs 2")
	@$(PY) -m bench.engine $(ENGINE)

bench-submit: $(STAMP) native ## what a submission costs slurmctld: no plugin, no-op Lua, our Lua, our C; a hung advisor
	@$(PY) -m bench.submit

bench-soak: $(STAMP) ## a thousand agents against one hub: a month, 8 hours without it, an hour of life (SOAK="--hours 48")
	@$(PY) -m bench.soak $(SOAK)

bench-year: $(STAMP) ## a year of 2,000 nodes in the hub: roll-up, reports, a backup under ingest (hours, 20 GB in TMPDIR; YEAR="--hours-of-days 6 --rollup-s 60": 8 minutes)
	@$(PY) -m bench.year $(YEAR)

bench-charts: $(STAMP) ## bytes and milliseconds of each kind of chart as SVG, beside Plotly (network, for Plotly)
	@$(PY) -m bench.charts

bench-wording: $(STAMP) ## a language model's sentences: taken, refused, wrong numbers (WORDING="--url ... --model ... STORE ...")
	@$(PY) -m bench.wording $(WORDING)

bench-packages: $(STAMP) ## sizes of the RPMs, what an agent downloads
	@$(PY) -m bench.packages

.PHONY: audit data help venv packages native plugins rpm lint types layers demo docs docs-check unit test figures-tests faults matrix scorecard baseline
.PHONY: bench-analytics bench-wording bench-charts bench-curves bench-unit bench-advisor bench-policy bench-submit bench-soak bench-year bench-packages
.PHONY: bench-events bench-double-gaussian bench-wrappers bench-engine
.PHONY: bench-plan bench-sim bench-waits bench-report bench-pages bench-now bench-startup bench-table bench-ingest bench-codec bench-agent bench-features bench-attribution bench-predict bench-train bench-history
