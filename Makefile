# Each target is one thing a person does. `make quickstart` is where to begin.

# A pipe fails where any of its commands does.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# What is fuzzed; each is a target of its own, too.
FUZZED := site campaign code_object metadata capture rewriter tiers queues

.PHONY: quickstart suite dependencies test-dependencies bench-dependencies dist-dependencies build test test-python wheel dist test-dist test-long test-cluster test-rocm test-rocm-long lint bench fuzz $(FUZZED:%=fuzz-%)

quickstart: dependencies build
	target/release/flipwave run examples/campaigns/quickstart.yaml --out target/quickstart --force
	target/release/flipwave report target/quickstart --out target/quickstart.html

# Programs of which rates are published, and others; their rates beside those. Some seconds.
suite: build
	for file in examples/suite/*.yaml; do \
		target/release/flipwave run $$file --out target/suite/$$(basename $$file .yaml) --force || exit; \
	done
	target/release/flipwave agreement target/suite/* --published examples/suite/published.csv

# The picture of that page in the README.
docs/report.png: quickstart
	chromium-headless-shell --no-sandbox --headless --hide-scrollbars --window-size=960,920 \
		--screenshot=$(CURDIR)/$@ file://$(CURDIR)/target/quickstart.html

# Install with apt what is missing, or say what to install.
dependencies:
	./dependencies.sh

test-dependencies:
	./dependencies.sh test

build:
	cargo build --release --package flipwave-cli

# Of tests with many cases a sample; with FLIPWAVE_TESTS=full all of them, as .ci/run has it.
# Examples are in the book, whose commands a test runs, and none in the documentation of items. That
# tests tell their times is unstable, so each of their programs is asked for it by the variable; with
# it, cargo would build everything anew.
test: lint
	cargo test --workspace --lib --bins --tests --config 'target."cfg(all())".runner = "env RUSTC_BOOTSTRAP=1"' \
		-- -Z unstable-options --report-time | tee target/tests.txt
	@echo; echo "The slowest tests, in seconds:"
	@sed -n 's/^test \(.*\) \.\.\. .*<\(.*\)s>$$/\2 \1/p' target/tests.txt | sort -rn | sed -n 1,10p
	@echo; FLIPWAVE=$(CURDIR)/target/debug/flipwave python/test.sh

# The Python package alone, in target/python, which is made for it.
test-python: build
	python/test.sh

# The Python package with the archive's program in it: target/wheels.
wheel: dist
	python/environment.sh
	packaging/wheel.sh

# An archive that runs on any Debian from 12 on, with LLVM in it: target/dist/flipwave-VERSION-x86_64-linux.tar.xz.
dist: dist-dependencies
	packaging/archive.sh

dist-dependencies:
	./dependencies.sh dist

# That archive in roots of Debian 12, 13 and testing, with nothing, with clang, and with ROCm. Roots that are
# missing are made (network, mmdebstrap, 5 GB); what cannot be is said and left out.
test-dist: dist
	./dependencies.sh rocm || echo "mmdebstrap cannot be installed here"
	tests/dist.sh target/dist/flipwave-*-x86_64-linux.tar.xz || [ $$? = 3 ]

# What takes too long for every day: hundreds of random programs at every level of optimisation,
# the math library at many points, every wrong rule on every family; examples and hooks everywhere in
# code that is not optimised, on every machine; flips and hooks in each kernel of matrix instructions.
# About an hour on two cores.
test-long: test-dependencies
	FLIPWAVE_TESTS=full cargo test --workspace --release -- --ignored
	FLIPWAVE_TESTS=long cargo test --package flipwave-campaigns --release --lib coverage
	FLIPWAVE_TESTS=long cargo test --package flipwave-tests --release --test end_to_end -- golden:: hooks:: matrix:: moved:: tools::

lint: test-dependencies
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Campaigns in shards on a real Slurm and a real HyperQueue, started here for it, with nodes, workers, jobs
# and servers killed. What is not installed and cannot be is said and left out. Some minutes.
test-cluster: build
	./dependencies.sh cluster || echo "not all of the engines can be installed here"
	tests/clusters/run.sh

# Other versions of ROCm than this machine's, in roots of other Debians that are made for it below target/rocm (2 GB,
# from Debian's mirror). Where there can be none, that is said. `test-rocm-long` also runs AMD's and ggml's own test
# suites there, for hours; it takes 16 GB.
test-rocm: build
	./dependencies.sh rocm || echo "mmdebstrap cannot be installed here"
	tests/rocm/run.sh short || [ $$? = 3 ]

test-rocm-long: build
	./dependencies.sh rocm
	tests/rocm/run.sh long

bench-dependencies:
	./dependencies.sh bench

# Speed of the embedded GPU, beside the same kernels as native code (PoCL on one thread), and of
# the quickstart campaign; speed of instrumenting code, and what counting costs; injections per
# second of the examples, of applications and of their captures; what compiling costs; twenty whole
# programs beside the same computed by the host.
bench: bench-dependencies
	POCL_MAX_PTHREAD_COUNT=1 cargo bench --package flipwave-tests --bench throughput
	cargo bench --package flipwave-tests --bench instrumentation
	cargo bench --package flipwave-tests --bench setup
	cargo bench --package flipwave-tests --bench compiling
	cargo bench --package flipwave-tests --bench injection
	cargo bench --package flipwave-tests --bench application
	cargo bench --package flipwave-tests --bench programs

# What nobody should be able to break, each for FUZZ_SECONDS, ten minutes by default: files and
# texts of any bytes, the rewriter with random kernels, and queues that hostile GPU code has written
# to. Those of bytes need `cargo install cargo-fuzz`; `make fuzz-rewriter` and the like run one.
fuzz: test-dependencies
	fuzz/run.sh $(FUZZED)

$(FUZZED:%=fuzz-%): fuzz-%: test-dependencies
	fuzz/run.sh $*
