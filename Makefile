# Start with `make quickstart`. CONTRIBUTING.md describes the targets for developers.

# A pipe fails if any of its commands fails.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# Names of the fuzzers; each one also has its own target.
FUZZED := site campaign code_object metadata capture ptx fat_binary rewriter tiers queues

.PHONY: quickstart suite two-instruction-sets dependencies test-dependencies bench-dependencies dist-dependencies build test test-python wheel dist test-dist test-long test-cluster test-rocm test-rocm-long test-tinygrad test-tinygrad-long test-silicon lint bench fuzz $(FUZZED:%=fuzz-%)

quickstart: dependencies build
	target/release/flipwave run examples/campaigns/quickstart.yaml --out target/quickstart --force
	target/release/flipwave report target/quickstart --out target/quickstart.html

# Run the benchmark suite and compare its rates with published ones. Takes some seconds.
suite: build
	for file in examples/suite/*.yaml; do \
		target/release/flipwave run $$file --out target/suite/$$(basename $$file .yaml) --force || exit; \
	done
	target/release/flipwave compare-published target/suite/* --published examples/suite/published.csv

# Run the benchmark suite on two instruction sets, AMD's and PTX, and compare the rates.
two-instruction-sets: build
	for target in gfx90a sm_80; do \
		for file in examples/suite/*.yaml; do \
			target/release/flipwave run $$file --target $$target --force \
				--out target/two-instruction-sets/$$target/$$(basename $$file .yaml) || exit; \
		done; \
	done
	target/release/flipwave compare target/two-instruction-sets/gfx90a target/two-instruction-sets/sm_80 \
		--out target/two-instruction-sets/compare.html

# Screenshot of the quickstart report, for the README.
docs/report.png: quickstart
	chromium-headless-shell --no-sandbox --headless --hide-scrollbars --window-size=960,920 \
		--screenshot=$(CURDIR)/$@ file://$(CURDIR)/target/quickstart.html

# Install missing packages with apt, or list them.
dependencies:
	./dependencies.sh

test-dependencies:
	./dependencies.sh test

build:
	cargo build --release --package flipwave-cli

# Run all tests on a sample of their cases; with FLIPWAVE_TESTS=full on all cases, as in .ci/run.
# Doctests are not run: examples are in docs/, and a test runs their commands. Reporting test times is an
# unstable feature, so the variable is set for each test program only; set for cargo, it would rebuild
# everything.
test: lint
	cargo test --workspace --lib --bins --tests --config 'target."cfg(all())".runner = "env RUSTC_BOOTSTRAP=1"' \
		-- -Z unstable-options --report-time | tee target/tests.txt
	@echo; echo "The slowest tests, in seconds:"
	@sed -n 's/^test \(.*\) \.\.\. .*<\(.*\)s>$$/\2 \1/p' target/tests.txt | sort -rn | sed -n 1,10p
	@echo; FLIPWAVE=$(CURDIR)/target/debug/flipwave python/test.sh

# Test only the Python package, in the environment target/python, which is created if needed.
test-python: build
	python/test.sh

# Build the Python package with the archive's program: target/wheels.
wheel: dist
	python/environment.sh
	packaging/wheel.sh

# Build an archive that runs on Debian 12 and later, with LLVM linked in:
# target/dist/flipwave-VERSION-x86_64-linux.tar.xz.
dist: dist-dependencies
	packaging/archive.sh

dist-dependencies:
	./dependencies.sh dist

# Test the archive in root file systems of Debian 12, 13 and testing: without packages, with clang, and with
# ROCm. Missing root file systems are created (network, mmdebstrap, 5 GB); those that cannot be created are
# reported and skipped.
test-dist: dist
	./dependencies.sh rocm || echo "mmdebstrap cannot be installed here"
	tests/dist.sh target/dist/flipwave-*-x86_64-linux.tar.xz || [ $$? = 3 ]

# Run tests that take too long for every change: hundreds of random programs at every optimisation level, the
# math library at many points, every wrong rule on every family; examples and hooks everywhere in unoptimised
# code, on every machine; flips and hooks in each kernel with matrix instructions. Takes about an hour on two
# cores.
test-long: test-dependencies
	FLIPWAVE_TESTS=full cargo test --workspace --release -- --ignored
	FLIPWAVE_TESTS=long cargo test --package flipwave-campaigns --release --lib coverage
	FLIPWAVE_TESTS=long cargo test --package flipwave-tests --release --test end_to_end -- golden:: hooks:: matrix:: moved:: tools::

lint: test-dependencies
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# Test sharded campaigns on real Slurm and HyperQueue instances, started for this purpose, while nodes, workers,
# jobs and servers are killed. Batch systems that are not installed and cannot be are reported and skipped.
# Takes some minutes.
test-cluster: build
	./dependencies.sh cluster || echo "not all batch systems can be installed here"
	tests/clusters/run.sh

# Test other ROCm versions in root file systems of other Debian releases, created below target/rocm (3 GB, from
# Debian's mirror). If none can be created, this is reported. `test-rocm-long` also runs the test suites of AMD
# and ggml there, which takes hours and 21 GB.
test-rocm: build
	./dependencies.sh rocm || echo "mmdebstrap cannot be installed here"
	tests/rocm/run.sh short || [ $$? = 3 ]

test-rocm-long: build
	./dependencies.sh rocm
	tests/rocm/run.sh long

# Compare the embedded GPU with an NVIDIA GPU of this machine: target/silicon/report.md. Takes hours; without a GPU,
# this is reported.
test-silicon: build
	tests/cuda/silicon.sh || [ $$? = 3 ]

# Test tinygrad, which needs no ROCm, in the environment target/tinygrad, which is created if needed (PyPI). If it
# cannot be created, this is reported. `test-tinygrad-long` also runs tinygrad's own tests from the checkout in
# TINYGRAD_SOURCE, which takes hours.
test-tinygrad: build
	tests/tinygrad/run.sh short || [ $$? = 3 ]

test-tinygrad-long: build
	tests/tinygrad/run.sh long

bench-dependencies:
	./dependencies.sh bench

# Measure the speed of the embedded GPU, compared with native code (PoCL on one thread), and of the quickstart
# campaign; the speed of instrumentation, and the cost of counting; injections per second for the examples, for
# applications and for their captures; the cost of compiling; the benchmark suite on PTX, compared with an AMD
# GPU; the cost of matrix instructions; and twenty complete programs, compared with the host.
bench: bench-dependencies
	POCL_MAX_PTHREAD_COUNT=1 cargo bench --package flipwave-tests --bench throughput
	cargo bench --package flipwave-tests --bench instrumentation
	cargo bench --package flipwave-tests --bench setup
	cargo bench --package flipwave-tests --bench compiling
	cargo bench --package flipwave-tests --bench injection
	cargo bench --package flipwave-tests --bench application
	cargo bench --package flipwave-tests --bench suite
	cargo bench --package flipwave-tests --bench matrix
	cargo bench --package flipwave-tests --bench programs

# Run each fuzzer for FUZZ_SECONDS, ten minutes by default: parsers with arbitrary bytes, the rewriter with
# random kernels, and queues written by hostile GPU code. Fuzzers of bytes need `cargo install cargo-fuzz`.
# `make fuzz-rewriter` and similar targets run a single fuzzer.
fuzz: test-dependencies
	fuzz/run.sh $(FUZZED)

$(FUZZED:%=fuzz-%): fuzz-%: test-dependencies
	fuzz/run.sh $*
