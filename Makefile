# Start with `make demo` or `make test`. Both install what they need.
.PHONY: demo test test-chromium test-load test-trainers test-miniwob test-python test-wheel test-clients test-envs test-browsergym test-nemo-gym test-ray test-apps test-archive test-replay web setup lint check-deploy bench bench-instance bench-collector bench-master bench-env chaos chaos-farm soak fuzz audit release wheel clean help

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

demo: ## Install what is needed and run a complete example
	@scripts/setup
	@scripts/web
	@echo "demo: building (5 to 15 minutes the first time)"
	@cargo build --quiet --release --bin webgym
	@target/release/webgym demo

test: ## Install what is needed and run the test suite
	@scripts/test

test-clients: ## Test with Playwright, Puppeteer, browser-use, Playwright MCP and generated OpenAPI clients (WEBGYM=path)
	@WEBGYM="$(WEBGYM)" scripts/test-clients

test-envs: ## Test webgym env and webgym mcp with OpenEnv, MiniWoB, TRL's pattern, MCP SDKs, the MCP inspector, inspect-ai and verifiers (PARTS="…", OPENENV=path of a clone, WEBGYM=path)
	@WEBGYM="$(WEBGYM)" PARTS="$(PARTS)" OPENENV="$(OPENENV)" SESSIONS="$(SESSIONS)" scripts/test-envs

test-browsergym: ## Run BrowserGym's own tests and every MiniWoB task on a farm (BROWSERGYM=path of a clone, PARTS="…", WEBGYM=path)
	@WEBGYM="$(WEBGYM)" BROWSERGYM="$(BROWSERGYM)" PARTS="$(PARTS)" scripts/test-browsergym

test-nemo-gym: ## Run NeMo Gym's tests of remote browser sessions with our provider (PYTHON=path of Python 3.13, WEBGYM=path)
	@WEBGYM="$(WEBGYM)" PYTHON="$(PYTHON)" scripts/test-nemo-gym

test-ray: ## Test farms on a Ray cluster of two nodes on this machine (WEBGYM=path)
	@WEBGYM="$(WEBGYM)" scripts/test-ray

test-python: ## Check and test the Python package (also part of make test; WEBGYM=path)
	@WEBGYM="$(WEBGYM)" scripts/test-python

test-wheel: ## Install the wheel without Rust in reach and run the documented programs (WHEEL=path, PROFILE=dev)
	@WHEEL="$(WHEEL)" PROFILE="$(PROFILE)" scripts/test-wheel

web: ## Build the pages of monitor and viewer if they changed
	@scripts/web

test-chromium: ## Run every test of a single instance on the full Chromium
	@scripts/setup --tests
	@cargo test --quiet -p webgym-browser --features every-case --test suite_chromium

test-load: ## Run both browser suites five times, then five times beside 12 busy processes (about 90 minutes; ROUNDS=5 LOAD=12 SUITES="suite_shell suite_chromium")
	@ROUNDS="$(ROUNDS)" LOAD="$(LOAD)" SUITES="$(SUITES)" scripts/test-load

test-trainers: ## Test with vLLM, LLaMA-Factory, verl, TRL, SkyRL-Gym and the original (ORIGINAL=path, PARTS="…"); installs about 10 GB below target/trainers
	@ORIGINAL="$(ORIGINAL)" PARTS="$(PARTS)" WEBGYM="$(WEBGYM)" scripts/test-trainers

test-miniwob: ## Solve MiniWoB tasks (drags, sliders, dates, clipboard) through a farm with 4 and 8 leases (TRIES=50 TASKS=… WEBGYM=path)
	@TRIES="$(TRIES)" TASKS="$(TASKS)" LEVELS="$(LEVELS)" SEEDS="$(SEEDS)" WEBGYM="$(WEBGYM)" scripts/test-miniwob

test-apps: ## Test with real web applications: is the first observation complete? (PARTS="…", TRIES=26); installs about 1 GB below target/apps
	@PARTS="$(PARTS)" TRIES="$(TRIES)" WEBGYM="$(WEBGYM)" scripts/test-apps

test-archive: ## Check archives with warcio, wacz, pywb and Playwright (WEBGYM=path)
	@WEBGYM="$(WEBGYM)" scripts/test-archive

test-replay: ## Record a modern site and practice episodes, replay them 100 times without a network (ARGS="--replays N")
	@scripts/setup --tests --quiet
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example replays -- --webgym target/release/webgym $(ARGS)

setup: ## Install what is needed to run and test
	@scripts/setup --tests

lint: ## Check formatting, lints, rustdoc and the minimum Rust version, as CI does
	@scripts/lint

check-deploy: ## Check deploy/ with the tools that use it
	@scripts/setup --tests --quiet
	@scripts/check-deploy

bench: ## Benchmark this machine: plain Chromium and the farm under the same load (about 27 minutes)
	@scripts/setup
	@cargo build --quiet --release --bin webgym
	@target/release/webgym bench

bench-instance: ## Benchmark one instance without a farm
	@scripts/setup
	@cargo bench --quiet -p webgym-browser --bench instance

bench-collector: ## Benchmark the collector with a simulated farm and model
	@cargo run --quiet --release -p webgym-rollout --example bench_collector

bench-master: ## Benchmark the master with 1 to 200 simulated nodes of 128 instances each
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example bench_master -- --webgym target/release/webgym

bench-env: ## Benchmark 64 sessions of webgym env against the same steps through /step (ARGS="--sessions N --rounds N --seconds N")
	@scripts/setup
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example bench_env -- --webgym target/release/webgym $(ARGS)

chaos: ## Chaos test: collect while components are killed, frozen, starved and disconnected (about 5 minutes; ARGS="--seed N")
	@scripts/setup --tests --quiet
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example chaos -- --webgym target/release/webgym $(ARGS)

chaos-farm: ## Kill a thousand browsers, renderers and helpers of a farm under load
	@scripts/setup
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example chaos_farm -- --webgym target/release/webgym --kills 1000

soak: ## Soak test: 2,000 short episodes; memory, descriptors, files and Redis keys must not grow (up to 20 minutes; ARGS="--episodes N")
	@scripts/setup --tests --quiet
	@cargo build --quiet --release --bin webgym
	@cargo run --quiet --release -p webgym-testkit --example soak -- --webgym target/release/webgym $(ARGS)

fuzz: ## Test the farm's API with schemathesis, then fuzz every parser (FUZZ_SECONDS=60 each)
	@scripts/setup --tests
	@scripts/schemathesis
	@scripts/fuzz

audit: ## Check licences, sources and known vulnerabilities of the dependencies
	@scripts/audit

release: ## Build webgym reproducibly: the same commit and compiler give the same bytes in any folder
	@scripts/release

wheel: ## Build the Python wheel webgym-rs into dist/ (PROFILE=dev for a quick build, TARGET=aarch64-unknown-linux-gnu)
	@PROFILE="$(PROFILE)" TARGET="$(TARGET)" scripts/wheel

clean: ## Remove build outputs
	@cargo clean
