# Everything runs from a fresh checkout with Python 3.11+ and make: each target installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BENCH := .venv-bench
FANCY := .venv-fancyimpute
SMURFF := .venv-smurff
MYFM := .venv-myfm
SERVE := .venv-serve
RAY := .venv-ray
SEEDS ?= 10
MINUTES ?= 30

.PHONY: demo pictures test test-hostile test-processors test-browser browser test-serve test-ray test-validity setup lint bench bench-accuracy bench-active bench-cluster bench-coverage bench-online bench-risk bench-serve bench-stream bench-support docs lock clean

demo: setup  ## the idea on a small matrix and on real images, and questions to a model: numbers here, files in surefill-demo/
	$(BIN)/surefill demo -o surefill-demo

test: lint docs  ## what CI runs: lint, types, layers, tests with warnings as errors, doctests, prose that is code
	$(BIN)/python -m pytest -q -n 2 tests
	$(BIN)/python -m pytest -q -n 2 --doctest-modules src

test-validity: setup  ## how often promises are broken: on known truths, by chances and values, on real tables; about two hours on two cores, resumable
	$(BIN)/python benchmarks/validity.py --draws 500 --jobs 2
	$(BIN)/python benchmarks/filled.py --draws 200 --jobs 2 --log build/filled.jsonl
	$(BIN)/python benchmarks/filled_leaning.py --draws 50 --jobs 2 --log build/filled_leaning.jsonl
	$(BIN)/python benchmarks/filled_real.py --seeds 10

test-hostile: setup  ## hostile tables, files and places: fuzzing, injected faults, kills, no home and no rights; about twenty minutes
	$(BIN)/python -m pytest -q tests/hostile --thorough
	$(BIN)/python tests/hostile/kills.py --kills 100
	$(BIN)/python tests/hostile/unprivileged.py
	$(BIN)/python tests/hostile/faults.py
	$(BIN)/python tests/hostile/fuzz.py --cases 2000 --seconds 600

test-processors: setup  ## the numerical tests under other kernels, threads and perturbed draws: some minutes for each of a dozen settings
	$(BIN)/python tests/processors.py

test-browser: setup browser  ## the report and the service's page in a real browser; installs Debian's chromium where it is missing
	$(BIN)/python -m pytest -q tests/report/test_browser.py tests/service/test_page_browser.py --kills 10

test-serve: setup $(SERVE)/.ready  ## the service: 100 kills under load, both databases, thousands of generated requests; about half an hour
	$(BIN)/python -m pytest -q tests/service --kills 100
	$(BIN)/python tests/service/generated_requests.py --schemathesis $(SERVE)/bin/st

test-ray: $(RAY)/.ready  ## a Ray cluster of three nodes on this machine: same results, and workers, a node and the driver killed; about ten minutes
	$(RAY)/bin/python -m pytest -q tests/cluster --kills 10

bench-cluster: $(RAY)/.ready  ## a fit on row blocks of a Ray cluster next to one table: cost, bytes moved, memory; some ten minutes
	$(RAY)/bin/python benchmarks/cluster.py

bench-serve: setup $(SERVE)/.ready  ## the service under load: ml-1m replayed, reads and writes, with and without a refit; then memory for twice MINUTES=30
	$(BIN)/python benchmarks/recorded.py serve.py --minutes $(MINUTES)
	$(BIN)/python benchmarks/recorded.py serve_memory.py --minutes $(MINUTES)

pictures: setup browser  ## the pictures of the front page and of the page about the report, made anew in docs/
	$(BIN)/python docs/pictures.py

browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
		|| { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } \
		|| { echo "chromium and chromedriver are needed: apt-get install chromium chromium-driver" >&2; exit 1; }

setup: $(VENV)/.ready

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup  ## the documentation site in build/docs, warnings as errors; every snippet of it and of the README is run
	rm -rf build/docs
	$(BIN)/sphinx-build -q -E -W --keep-going docs build/docs
	$(BIN)/python -m pytest -q -n 2 docs/check_site.py docs/check_snippets.py

bench: setup $(BENCH)/.ready $(FANCY)/.ready  ## speed and accuracy, next to peers that live in an environment of their own
	$(BIN)/python benchmarks/readers.py
	$(BIN)/python benchmarks/conic.py
	$(BIN)/python benchmarks/promise.py
	$(BIN)/python benchmarks/factor_model.py --peer $(BENCH)/bin/python
	$(BIN)/python benchmarks/completion.py --peer $(FANCY)/bin/python

bench-accuracy: setup $(BENCH)/.ready $(MYFM)/.ready  ## the default completion on eight tables, and next to peers: about an hour, nearly all of it theirs
	$(BIN)/python benchmarks/recorded.py accuracy.py --myfm $(MYFM)/bin/python --surprise $(BENCH)/bin/python

bench-active: setup  ## which cells to ask next, on Jester, drug responses and MovieLens: about half an hour
	$(BIN)/python benchmarks/recorded.py active.py --seeds $(SEEDS)

bench-coverage: setup  ## the coverage program at real size: about an hour
	$(BIN)/python benchmarks/oracle.py
	$(BIN)/python benchmarks/patterns.py
	$(BIN)/python benchmarks/coverage_program.py convex square ranks rounds path whole
	$(BIN)/python benchmarks/quadratic.py tiny blocks cliques simulated compare

bench-online: setup  ## the online game: cost of a round, regret, blocks, MovieLens; about half an hour
	for study in steps regret blocks movielens; do $(BIN)/python benchmarks/online.py $$study; done

bench-stream: setup  ## streams: confidence, progressive errors, speed, kills; some minutes
	$(BIN)/python benchmarks/stream.py

bench-support: setup  ## what is kept where nothing was observed, next to the posterior: about two hours, or fewer SEEDS=2
	$(BIN)/python benchmarks/recorded.py support.py --seeds $(SEEDS)

bench-risk: setup $(SMURFF)/.ready  ## which predictions to trust, next to peers: about a quarter of an hour
	$(BIN)/python benchmarks/risk.py --smurff $(SMURFF)/bin/python

lock:  ## pin anew everything that setup installs
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip --disable-pip-version-check --quiet install -e '.[conic,io,report,graphs,serve,postgres,docs,dev]'
	build/lock/bin/python -m pip --disable-pip-version-check freeze --exclude-editable > requirements.lock
	rm -rf build/lock

clean:
	rm -rf $(VENV) $(BENCH) $(FANCY) $(SMURFF) $(MYFM) $(SERVE) $(RAY) build

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -r requirements.lock
	$(PIP) install --no-deps --editable .
	touch $@

$(BENCH)/.ready: benchmarks/requirements.lock
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/requirements.lock
	touch $@

$(FANCY)/.ready: benchmarks/requirements-fancyimpute.lock
	$(PYTHON) -m venv $(FANCY)
	$(FANCY)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/requirements-fancyimpute.lock
	touch $@

$(SERVE)/.ready: tests/service/requirements-serve.lock
	$(PYTHON) -m venv $(SERVE)
	$(SERVE)/bin/python -m pip --disable-pip-version-check --quiet install -r tests/service/requirements-serve.lock
	touch $@

$(RAY)/.ready: requirements.lock tests/cluster/requirements-ray.lock pyproject.toml
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip --disable-pip-version-check --quiet install -r requirements.lock -r tests/cluster/requirements-ray.lock
	$(RAY)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --editable .
	touch $@

$(SMURFF)/.ready: benchmarks/requirements-smurff.lock
	$(PYTHON) -m venv $(SMURFF)
	$(SMURFF)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/requirements-smurff.lock
	touch $@

$(MYFM)/.ready: benchmarks/requirements-myfm.lock
	$(PYTHON) -m venv $(MYFM)
	$(MYFM)/bin/python -m pip --disable-pip-version-check --quiet install -r benchmarks/requirements-myfm.lock
	touch $@
