# Two targets carry a newcomer: demo and test. Both set up what they need.
.PHONY: demo test test-chromium web setup lint check-deploy bench bench-instance bench-collector bench-master chaos chaos-farm soak fuzz audit release clean help

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

demo: ## Set up and show webgym at work
	@scripts/setup
	@scripts/web
	@echo "demo: building (a few minutes the first time)"
	@cargo build --quiet --release --bin webgym
	@target/release/webgym demo

test: ## Set up and run every test
	@scripts/test

web: ## Build the pages of monitor and viewer, if anything changed
	@scripts/web

test-chromium: ## Every case of one instance on the full Chromium too
	@scripts/setup --tests
	@cargo test --quiet -p webgym-browser --features every-case --test suite_chromium

setup: ## Install what running and testing need
	@scripts/setup --tests

lint: ## Check formatting, lints, rustdoc and the minimum Rust version, as CI does
	@scripts/lint

check-deploy: ## Check deploy/ with the tools that will read it
	@scripts/setup --tests --quiet
	@scripts/check-deploy

bench: ## Measure this machine: bare Chromium and the farm side by side (about 12 minutes)
	@scripts/setup
	@cargo build --quiet --release --bin webgym
	@target/release/webgym bench

bench-instance: ## Measure one instance without a farm
	@scripts/setup
	@cargo bench --quiet -p webgym-browser --bench instance

bench-collector: ## Measure the collector alone against a simulated farm and model
	@cargo run --quiet --release -p webgym-rollout --example bench_collector

bench-master: ## Measure the master over 1 to 200 simulated nodes with 128 instances each
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example bench_master -- --webgym target/release/webgym

chaos: ## Collect while everything is killed, frozen, starved and cut off (about 5 minutes; ARGS="--seed N")
	@scripts/setup --tests --quiet
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example chaos -- --webgym target/release/webgym $(ARGS)

chaos-farm: ## Kill a thousand browsers, renderers and helpers while a farm is in use
	@scripts/setup
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example chaos_farm -- --webgym target/release/webgym --kills 1000

soak: ## 2,000 short episodes on real browsers; memory, descriptors, files and keys must stay flat (up to 20 minutes; ARGS="--episodes N")
	@scripts/setup --tests --quiet
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example soak -- --webgym target/release/webgym $(ARGS)

fuzz: ## Let schemathesis loose on the farm's API, then fuzz every parser (FUZZ_SECONDS=60 each)
	@scripts/setup --tests
	@scripts/schemathesis
	@scripts/fuzz

audit: ## Check licences, sources and known holes of what we depend on
	@scripts/audit

release: ## Build webgym so that the same commit gives the same bytes anywhere
	@scripts/release

clean: ## Remove build outputs
	@cargo clean
