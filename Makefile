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

frameworks: ## JAX for the CPU and an S3 server into build/frameworks, for tests (network)
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

demo: ## in 4 minutes: a real Slurm cluster on loopback, a report, a page, advice at sbatch (DEMO_KEEP=1: it stays up); else a recording (exit code 5)
	@RECORD='$(RECORD)' STORE='$(STORE)' HUBS='$(HUBS)' tools/demo

demo-all: ## the same with all jobs, then the simulator, a plan, estimates, rules: 10 minutes (STORE=lake HUBS=2: two hubs)
	@RECORD='$(RECORD)' STORE='$(STORE)' HUBS='$(HUBS)' tools/demo --all

data: $(STAMP) ## fetch the public logs that some tests read (network; into GPUWASTE_DATA, or data/)
	@$(PY) -m tools.data $(DATA)

docs: $(STAMP) ## write docs/reference and etc/gpuwaste.toml from the code
	@tools/generate-docs

docs-check: $(STAMP) ## the generated pages are of today; links, commands, keys and metrics of all pages are real
	@tools/generate-docs --check
	@$(VENV)/bin/pytest -q -m "not cluster" tests/docs

docs-pictures: $(STAMP) ## the pictures of README and docs, into docs/pictures (Chromium: make packages; logs: make data)
	@$(PY) -m tools.pictures

docs-site: $(STAMP) ## the documentation as a static site in build/docs-site, with search; fails at a dead link (network)
	@$(PY) -m tools.docs_site

unit: $(STAMP) ## the tests without servers, root, Debian packages and builds, but for the longest: a minute
	@NUMBA_DISABLE_JIT=1 $(VENV)/bin/pytest -q -n auto --dist loadscope --hypothesis-profile unit -m "not long" --durations 10 tests/unit

thorough: $(STAMP) ## the tests that draw examples or sizes, with all of them: half an hour, for a night or a release
	@chrt --idle 0 $(VENV)/bin/pytest -q -n auto --dist loadscope --timeout 900 -m "hypothesis or drawn" --durations 30 tests/unit tests/integration

TESTED := venv packages native plugins browser-tools frameworks slurm-gpu
test: $(TESTED) ## the tests to run before a push: unit, integration, the core of a real cluster; ten minutes
	@tools/run-tests test

test-all: $(TESTED) ## every test that `make test` does not run: long ones, the demo, all clusters (WORKERS at the same time), packages, other releases, the field
	@$(PY) -m tools.rpm --for-tests
	-@$(PY) -m tools.deb.in_tree 24.11 # workers have no network for its downloads; where it cannot be made its tests say so
	@$(MAKE) --no-print-directory --jobs 2 --output-sync field matrix-turn
	@WORKERS=$(WORKERS) tools/run-tests test-all

figures-tests: $(STAMP) ## what the last `make test` and `make test-all` took, into docs/figures.md and tests/durations.json
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

scorecard: $(STAMP) ## write docs/scorecard.md from the public logs in ../shared/data or data/ (many minutes)
	@$(PY) -m tools.scorecard
scorecard-weekly: $(STAMP) ## the part of docs/scorecard.md on weekly retraining alone (ten minutes)
	@$(PY) -m tools.scorecard --weekly

baseline: $(STAMP) ## write the bundle of day one anew: after a change of the features
	@$(PY) -m tools.baseline src/gpuwaste/advice/predict/baseline

bench: $(STAMP) $(if $(NAME),native) ## print a published figure: NAME=report ARGS="--help"; without NAME the list
	@$(PY) -m bench $(NAME) $(ARGS)

.PHONY: audit baseline bench browser-tools build-packages data deb demo demo-all docs docs-check docs-pictures docs-site faults field figures-tests frameworks help layers lint matrix matrix-submit matrix-turn native packages plugins rpm scorecard scorecard-weekly slurm-gpu test test-all thorough types unit venv
