# The project's commands. `make` alone lists them.
#
#   PYTHON   the Python that makes the environment (3.11 or later)
#   VENV     where the environment lives
#   ARGS     passed on: make lab ARGS=--no-browser     make test ARGS="-k gemm"

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=

bin     := $(VENV)/bin
tests   := $(bin)/python -m pytest -p no:nbval # whose plugin takes a second to load
by_day  := -m "not nightly"
two     := -n 2 --dist worksteal
# Journeys that `make test` skips on a computer without bubblewrap or Chromium, which these tests need anyway.
needing := $(addprefix tests/core/test_journeys.py::test_,a_class_of_two_gets_its_grades a_lesson_runs_in_jupyterlab)
three   := -n 3 --dist worksteal # while tests wait for a browser, others compute
install := $(bin)/python -m pip install --quiet --constraint constraints.txt

unexport PYTHONDONTWRITEBYTECODE # hundreds of processes would compile every module anew

.PHONY: help lab test rest whole coverage lint format oldest bench book released docs fuzz mutants address clean distclean

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

lab: $(VENV)/installed  ## open the workbook in JupyterLab
	@$(bin)/cypresskit lab $(ARGS)

test: $(VENV)/installed-tests  ## does it work here, and is it right? The tests in tests/core; or those in ARGS
ifeq ($(strip $(ARGS)),)
	$(tests) -q $(by_day) --failed-first $(two) tests/core
else
	$(tests) $(ARGS)
endif

rest: $(VENV)/installed-tests  ## run what `make test` leaves out: the course, pages, the book
	$(tests) -q $(by_day) $(three) $(needing) tests/course tests/pages tests/book $(ARGS)

whole: $(VENV)/installed-tests  ## run every test
	$(tests) -q --failed-first $(three) $(ARGS)

coverage: $(VENV)/installed-tests  ## how much of the package the tests of core and course run: at least 90 %
	$(tests) -q $(two) $(by_day) tests/core tests/course --cov=cypresskit --cov-report=term --cov-fail-under=90 $(ARGS)

lint: $(VENV)/installed-tests  ## check style, types, imports and names
	$(bin)/ruff check cypresskit tests tools *.py
	$(bin)/ruff format --check cypresskit tests tools *.py
	$(bin)/mypy
	$(bin)/python -m tools.check_imports
	$(bin)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(bin)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@if [ -d node_modules ]; then npm run --silent lint; else\
	 echo "JavaScript isn't checked: that needs Node, and once: npm install --no-package-lock"; fi

format: $(VENV)/installed-tests  ## put the code in the project's style
	$(bin)/ruff check --fix cypresskit tests tools *.py
	$(bin)/ruff format cypresskit tests tools *.py
	@if [ -d node_modules ]; then npm run --silent format; fi

oldest: $(bin)/python  ## some of the core's tests, pictures, and a lesson in JupyterLab, with the oldest versions that pyproject.toml allows, in VENV=.venv-oldest
	$(bin)/python -m pip install --quiet $$($(bin)/python -c 'import re, tomllib;\
	 project = tomllib.load(open("pyproject.toml", "rb"))["project"];\
	 extras = project["optional-dependencies"];\
	 lines = project["dependencies"] + extras["draw"] + extras["lab"];\
	 print(*(re.sub(">=([0-9.]+).*", r"==\1", line) for line in lines if "cypresskit" not in line))') hypothesis playwright pytest
	PYTHONPATH=. $(bin)/python .ci/use_draw.py
	PYTHONPATH=. $(bin)/python .ci/use_lab.py
	$(bin)/python -m pytest -q tests/core/test_gemm.py tests/core/test_timing.py tests/core/test_blas_dd.py
	PYTHONPATH=$(CURDIR) $(bin)/python -m pytest -q tests/pages/test_widget_channel.py -k while_a_cell_runs

bench: $(VENV)/installed-tests  ## how long do readers wait? ARGS="clock lesson" for some rows
	@$(bin)/python -m tools.bench $(ARGS)

book: $(VENV)/installed-tests  ## make and run the lessons' notebooks from their sources; ARGS=03 for one
	@$(bin)/python -m tools.book notebooks $(ARGS)

released: $(VENV)/installed  ## put what the lessons time into the package, as a release has it
	@$(bin)/python -m tools.released

docs: $(VENV)/installed-tests  ## build the documentation as a site that works offline, into site/, and check its links
	@$(bin)/python -m tools.site site --launches

fuzz: $(VENV)/installed-tests  ## the laws of all tests on new random programs, launches and examples; ARGS=tests/core/test_fuzz.py for some
	$(tests) -q $(three) --new $$(date +%s) $(ARGS)

mutants: $(VENV)/installed-tests  ## change the package in sixty random places, and print what its tests don't notice; for an hour of quiet
	@$(bin)/python -m tools.mutants $(ARGS)

address:  ## write the public address into README.md and pyproject.toml: URL=https://github.com/owner/cypresskit
	@$(PYTHON) .ci/address $(URL)

clean:  ## remove caches and build products
	rm -rf build dist site *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find cypresskit tests notebooks -name __pycache__ -prune -exec rm -rf {} +
	find notebooks -name .ipynb_checkpoints -prune -exec rm -rf {} +

distclean: clean  ## ... and the environments
	rm -rf .venv .venv-*

$(bin)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("cypresskit needs Python 3.11 or later, and\
	 $(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.13 ...")'
	$(PYTHON) -m venv $(VENV)

# The stamps are what makes the second time start at once; an edit of either file installs again.
# setuptools comes from the constraints too, so the build needs no environment of its own.
$(VENV)/installed: pyproject.toml constraints.txt | $(bin)/python
	@echo "1 of 2: installing JupyterLab and the rest, some 600 MB, into $(VENV). Once; one to four minutes."
	@$(install) setuptools wheel
	@rm -f $(VENV)/failed; { $(bin)/python -m pip install --constraint constraints.txt --no-build-isolation \
	 --editable '.[lab]' || touch $(VENV)/failed; } | grep --line-buffered -E '^(Collecting|  Downloading|Installing)';\
	 [ ! -e $(VENV)/failed ]
	@echo "2 of 2: compiling the simulator for this processor, and timing what lesson 00 shows. Once; half a minute."
	@$(bin)/python -m cypresskit.cli.ahead notebooks/00_start_here.ipynb
	@touch $@

$(VENV)/installed-tests: $(VENV)/installed
	@echo "Installing the test tools into $(VENV): once."
	@$(install) 'pip>=25.1' # the first that knows groups
	@$(install) --no-build-isolation --editable '.[lab]' --group test --group docs
	@touch $@
