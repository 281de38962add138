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

build-packages: ## install the Debian packages that make rpm and make deb need (root, Debian 12 or 13)
	@tools/install-debian-packages build

browser-tools: ## axe-core for tests/browser, into build/browser (npm)
	@tools/browser-tools

frameworks: $(STAMP) ## JAX for the CPU and an S3 server into build/frameworks, for tests (network)
	@tools/framework-venvs >/dev/null
	@tools/framework-venvs s3 >/dev/null

slurm-gpu: $(STAMP) packages ## Slurm's own plugin for NVML into build/slurm-gpu, for tests (network)
	@$(PY) -m tools.slurm_gpu >/dev/null

native: $(STAMP) ## build the simulated NVML and its load program
	@$(MAKE) --no-print-directory -C native OUT=$(CURDIR)/$(NATIVE) PYTHON=$(CURDIR)/$(PY)

plugins: ## build the submit plugins for the installed Slurm (SLURM_INCLUDE for another release's headers)
	@$(MAKE) --no-print-directory -C plugins/job_submit OUT=$(CURDIR)/$(PLUGINS) c lua

rpm: $(STAMP) build-packages ## the RPMs and their source in build/rpm, checked with rpmlint (docs/how-to/install.md)
	@$(PY) -m tools.rpm

deb: $(STAMP) build-packages ## the same as Debian packages in build/deb, checked with lintian
	@$(PY) -m tools.deb

lint: $(STAMP) ## ruff, format check
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: $(STAMP) ## mypy --strict
	@$(VENV)/bin/mypy

layers: $(STAMP) ## import-linter
	@$(VENV)/bin/lint-imports

audit: ## known weaknesses of the locked packages (network to pypi.org)
	@tools/audit

demo: venv ## a real Slurm cluster on loopback, three users, reports, pages (DEMO_KEEP=1: it stays up); else a recording (exit code 5); STORE=lake HUBS=2
	@RECORD='$(RECORD)' STORE='$(STORE)' HUBS='$(HUBS)' tools/demo

data: $(STAMP) ## fetch the public logs that some tests read (network; into GPUWASTE_DATA, or data/)
	@$(PY) -m tools.data $(DATA)

docs: $(STAMP) ## write docs/reference and etc/gpuwaste.toml from the code
	@tools/generate-docs

docs-check: $(STAMP) ## the generated pages are of today; links, commands, keys and metrics of all pages are real
	@tools/generate-docs --check
	@$(VENV)/bin/pytest -q -m "not cluster" tests/docs

unit: $(STAMP) ## the tests without servers, root, Debian packages and builds, but for the longest: a minute
	@NUMBA_DISABLE_JIT=1 $(VENV)/bin/pytest -q -n auto --dist loadscope --hypothesis-profile unit -m "not long" --durations 10 tests/unit

thorough: $(STAMP) ## tests/unit with all examples of Hypothesis and all sizes: half an hour, for a night or a release
	@$(VENV)/bin/pytest -q -n auto --dist loadscope --timeout 900 --durations 30 tests/unit

test: venv packages native plugins browser-tools frameworks slurm-gpu ## all tests, the real cluster included, WORKERS at the same time
	@$(PY) -m tools.rpm --for-tests
	-@$(PY) -m tools.deb.in_tree 24.11 # workers have no network for its downloads; where it cannot be made its tests say so
	@WORKERS=$(WORKERS) tools/run-tests

figures-tests: $(STAMP) ## what the last `make test` took, into docs/figures.md and tests/durations.json
	@$(PY) -m tools.durations

faults: venv packages native plugins ## every fault of the submit path on a real slurmctld; writes what it measured to docs
	@rm -f docs/faults-measured.json
	@GPUWASTE_FAULTS_OUT=$(CURDIR)/docs/faults-measured.json $(VENV)/bin/pytest tests/system/test_submit_faults.py
	@tools/generate-docs

matrix: venv packages native ## every part of the product on Slurm 22.05, 24.11 and 26.05 (root; hours; trees in build/trees or GPUWASTE_TREES)
	@$(PY) -m tools.matrix --part all --record docs/releases-measured.json; code=$$?; tools/generate-docs; exit $$code

matrix-turn: venv packages native ## ten minutes of all parts on Slurm 24.11 or 26.05, in turn by the day (RELEASE=26.05: that one)
	@$(PY) -m tools.matrix --turn $(if $(RELEASE),--release $(RELEASE))

matrix-submit: venv packages native ## the submit path alone on the three releases, with one table
	@$(PY) -m tools.matrix

field: venv native ## our Debian packages under systemd on Debian 13 with Slurm 24.11 (root; trees in build/trees or GPUWASTE_TREES; FIELD="--check NAME"; VM=1: in a virtual machine with complete cgroups; NET=1: on three hosts)
	@$(PY) -m tools.field$(if $(VM),.vm --record docs/field-vm-measured.json)$(if $(NET),.net) $(FIELD)$(if $(VM),; code=$$?; tools/generate-docs; exit $$code)
.PHONY: field

scorecard: $(STAMP) ## write docs/scorecard.md from the public logs in ../shared/data or data/ (many minutes)
	@$(PY) -m tools.scorecard
scorecard-weekly: $(STAMP) ## the part of docs/scorecard.md on weekly retraining alone (ten minutes)
	@$(PY) -m tools.scorecard --weekly

bench-unit: $(STAMP) ## what `make unit` takes: seconds, CPU seconds, the slowest tests; beside one process
	@$(PY) -m bench.unit

bench-report: $(STAMP) ## time of gpuwaste report with a million jobs in the hub
	@$(PY) -m bench.report

bench-now: $(STAMP) ## GET /v1/now with 2,000 nodes: milliseconds, bytes, 50 readers at once
	@$(PY) -m bench.now

bench-pages: $(STAMP) ## the hub's pages: milliseconds with 50 readers, bytes, paint in Chromium, beside JSON (PAGES="--home DIR")
	@$(PY) -m bench.pages $(PAGES)

bench-flood: $(STAMP) ## what others wait while one user, or strangers, flood the hub: seconds of a page and of /v1/health (root)
	@$(PY) -m bench.flood $(FLOOD)

bench-startup: $(STAMP) ## start-up of the command: --help and a report, beside python3 and sacct
	@$(PY) -m bench.startup

bench-analytics: $(STAMP) ## each view over 16 million jobs: ms, bytes; beside pandas and Plotly (pypi; ANALYTICS="--jobs 2000000")
	@$(PY) -m bench.analytics $(ANALYTICS)

bench-table: $(STAMP) ## a million jobs from the store to a table and to the state of predictions: seconds, memory (TABLE="--home DIR": the year of bench-year)
	@$(PY) -m bench.table $(TABLE)

bench-ingest: $(STAMP) ## hours rows per second that the hub takes
	@$(PY) -m bench.ingest

bench-many: $(STAMP) ## hours rows per second that one hub and three hubs take on one lake
	@$(PY) -m bench.many

bench-codec: $(STAMP) ## a batch of hours read with msgspec and with pydantic: microseconds a row, imports
	@$(PY) -m bench.codec

bench-agent: $(STAMP) native ## what the agent costs a node: CPU, memory, bytes a day, scrapes; AMD=8, INTEL=8 add GPUs
	@$(PY) -m bench.agent $(if $(AMD),--amd $(AMD)) $(if $(INTEL),--intel $(INTEL)) $(if $(HOURS),--hours $(HOURS))

bench-agent-fold: $(STAMP) ## memory of the child that folds samples, part by part
	@$(PY) -m bench.agent_fold

bench-curves: $(STAMP) native ## a job's samples from a node, 8 GPUs x 24 h: seconds, bytes, the agent's memory
	@$(PY) -m bench.curves

bench-features: $(STAMP) ## features: jobs per second, us for an update and a vector, bytes of a key
	@$(PY) -m bench.features

bench-ablation: $(STAMP) ## what groups of features add to the prediction of failure, on public logs (ABLATION="--seeds 5")
	@$(PY) -m bench.ablation $(ABLATION)

bench-attribution: $(STAMP) native ## samples on the right job, by layout, on real clusters (ROUNDS, SEED)
	@$(PY) -m bench.attribution

bench-predict: $(STAMP) ## all targets' inference for one job: latency, load time, memory, beside XGBoost
	@$(PY) -m bench.predict

bench-shadow: $(STAMP) ## CPU of scoring a model on trial at a submission, and of comparing 50,000 outcomes at the hub
	@$(PY) -m bench.shadow

baseline: $(STAMP) ## write the bundle of day one anew: after a change of the features
	@$(PY) -m tools.baseline src/gpuwaste/advice/predict/baseline

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

bench-estimate-time: $(STAMP) ## step times on real GPU times of 1,110 vision models: seen, unseen, another GPU, coverage (ESTIMATE="--data DIR")
	@$(PY) -m bench.estimate_time $(ESTIMATE)

bench-plan: $(STAMP) ## when five candidates start: seconds with 5,000 queued jobs on 2,000 nodes (PLAN="--jobs 500")
	@$(PY) -m bench.plan $(PLAN)

bench-estimate: $(STAMP) ## estimates of programs: memory beside XLA's figure for an H100, what 100,000 lines of HLO cost
	@$(PY) -m bench.estimate $(ESTIMATE)

bench-events: $(STAMP) ## events handed over: catch-up a second, milliseconds to a webhook and a Kafka broker (EVENTS="--jobs 100000")
	@$(PY) -m bench.events $(EVENTS)

bench-rescore: $(STAMP) ## running jobs predicted again: seconds for 5,000 that are due, beside one by one (RESCORE="--due 500")
	@$(PY) -m bench.rescore $(RESCORE)

bench-rescore-logs: $(STAMP) ## what predicting again at the start and 10 minutes later adds on public logs, and notices of limits
	@$(PY) -m bench.rescore_logs $(RESCORE)

bench-early-samples: $(STAMP) ## what the first minutes of GPU use add to the prediction of failure, on the Philly log
	@$(PY) -m bench.early_samples

bench-events-killed: $(STAMP) ## a million events while hub and broker are killed with -9: lost, twice, out of order (KILLED="--events 60000")
	@$(PY) -m bench.events_killed $(KILLED)

bench-rules: $(STAMP) ## rules: a pass of 100 over 20,000 jobs, a replayed month, real GPUs that woke up (RULES="--nodes 380")
	@$(PY) -m bench.rules $(RULES)

bench-engine: $(STAMP) ## the simulator's schedulers beside an ensemble of a real slurmctld (an hour; ENGINE="--hours 1 --runs 2")
	@$(PY) -m bench.engine $(ENGINE)

bench-submit: $(STAMP) native ## what a submission costs slurmctld: no plugin, no-op Lua, our Lua, our C; a hung advisor
	@$(PY) -m bench.submit

bench-soak: $(STAMP) ## a thousand agents against one hub: a month, 8 hours without it, an hour of life (SOAK="--hours 48")
	@$(PY) -m bench.soak $(SOAK)

bench-year: $(STAMP) ## a year of 2,000 nodes in the hub: roll-up, reports, a backup under ingest (hours, 20 GB in TMPDIR; YEAR="--hours-of-days 6 --rollup-s 60": 8 minutes)
	@$(PY) -m bench.year $(YEAR)

bench-year-lake: $(STAMP) ## reports over a year of 10,000 GPUs from a file and from a lake that it is moved to (YEAR="--home DIR")
	@$(PY) -m bench.year_lake $(YEAR)

bench-move: $(STAMP) ## the hub's store moved from a file to a lake and back: rows a second (MOVE="--nodes 2000 --days 365": 150 million hours)
	@$(PY) -m bench.move $(MOVE)

bench-charts: $(STAMP) ## bytes and milliseconds of each kind of chart as SVG, beside Plotly (network, for Plotly)
	@$(PY) -m bench.charts

bench-wording: $(STAMP) ## a language model's sentences: taken, refused, wrong numbers (WORDING="--url ... --model ... STORE ...")
	@$(PY) -m bench.wording $(WORDING)

bench-packages: $(STAMP) ## sizes of the RPMs, what an agent downloads
	@$(PY) -m bench.packages

.PHONY: audit data help venv packages build-packages frameworks slurm-gpu native plugins rpm deb lint types layers demo docs docs-check unit test figures-tests faults matrix scorecard scorecard-weekly baseline matrix-turn matrix-submit
.PHONY: bench-flood bench-ablation bench-analytics bench-wording bench-charts bench-curves bench-unit bench-advisor bench-policy bench-submit bench-soak bench-year bench-year-lake bench-move bench-packages
.PHONY: bench-early-samples bench-rescore bench-rescore-logs bench-rules bench-events-killed bench-events bench-double-gaussian bench-wrappers bench-engine
.PHONY: bench-estimate bench-estimate-time bench-shadow bench-plan bench-sim bench-waits bench-report bench-pages bench-now bench-startup bench-table bench-ingest bench-many bench-codec bench-agent bench-agent-fold bench-features bench-attribution bench-predict bench-train bench-history
