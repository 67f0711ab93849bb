# The targets below build all tools beyond Go, make, git, gcc and python3 from source, at pinned
# versions, into .cache/bin. tools/system.sh installs the system packages of the SDKs in Python and
# TypeScript.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

BIN := .cache/bin
# The programs that tools/go.mod pins.
PINNED := buf protoc-gen-go protoc-gen-go-grpc controller-gen golangci-lint benchstat helm hugo
TOOLS := $(addprefix $(BIN)/,buf protoc-gen-go protoc-gen-go-grpc controller-gen)
TYPESCRIPT := sdk/typescript/node_modules/.package-lock.json
TYPESCRIPT_BUILT := sdk/typescript/dist/index.js
LINKS := tools/links/node_modules/.package-lock.json
WEBSITE := examples/website/typescript/node_modules/.package-lock.json
MODULE := github.com/hookloop/hookloop
# The Go modules beside the main one that are tested and linted as it is.
MODULES := gen internal/protocol sdk/go examples/exec-transport examples/hello-grpc examples/stubs/go tools
# The number of packages that are compiled and tested at a time.
PARALLEL ?= 2
# The same of integration packages. Each runs its own control plane, and waits for it often.
PLANES ?= 3
# The number of integration tests of a package that run at a time. They wait more than they compute.
TESTS ?= 6
TESTFLAGS ?=
# A Kubernetes version of test/controlplane, such as 1.31; empty is the newest.
K8S ?=
FUZZTIME ?= 5000x
# Property tests try a tenth of their random cases in a short run.
SHORT ?= -short
# Go starts packages in this order, so that the longest do not end alone.
LONGEST := $(addprefix ./test/,integration prove docs bench/compare bench/live memapi cluster)
# Packages of this name below internal/ test the package above them on a control plane.
INSIDE := /internal/.*/integration$$
# The output of "hookloop version". Without a git repository they are empty, and Go's build information
# is used.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)
IMAGE ?= hookloop/hookloop:dev
# The platforms of the programs of "make release".
PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64

ifneq ($(K8S),)
# internal/localplane runs this program.
export HOOKLOOP_CONTROLPLANE := $(CURDIR)/$(BIN)/$(K8S)/controlplane
endif

.PHONY: help
help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Run the hello-world demo on a real control plane (DEMO=once: exit at its end)
	@tools/go-build.sh "$(if $(DEMO_HOOKLOOP),,hookloop and )the demo" \
	  -ldflags "$(LDFLAGS)" -o $(BIN)/ $(if $(DEMO_HOOKLOOP),,./cmd/hookloop) ./test/demo
	@cd examples/hello-grpc && ../../tools/go-build.sh "the hook" -tags otlp -o $(CURDIR)/$(BIN)/hello-grpc .
	@exec $(BIN)/demo

# Only the example stubs needs Jaeger, and hooks in Ruby, Java and C++.
STUBS = $(if $(EXAMPLES),$(filter stubs,$(EXAMPLES)),stubs)
.PHONY: examples
examples: controlplane build sdks $(if $(STUBS),stubs jaeger-build) ## Run the examples on a real control plane (EXAMPLES="bluegreen": only these)
	@go build -o $(BIN)/prove ./test/prove
	@exec $(BIN)/prove $(EXAMPLES)

.PHONY: test
test: ## Run all checks and tests, and print the time of each part
	@tools/parts.sh lint check-gen unit fuzz integration

.PHONY: unit
unit: sdks $(WEBSITE) ## Run the unit tests, with the race detector, and the SDKs' tests (SHORT=: with all random cases)
	@$(MAKE) --jobs=2 unit-go unit-sdks

.PHONY: unit-go
unit-go:
	go test -race $(SHORT) -vet=off -p $(PARALLEL) -timeout 10m $(TESTFLAGS) \
	  $$(go list ./... | grep -v -e '^$(MODULE)/test/' -e '$(INSIDE)')
	go test -vet=off -run Allocates ./engine/internal/benchmarks
	for module in $(MODULES); do go -C $$module test -race $(SHORT) -vet=off -timeout 10m $(TESTFLAGS) ./...; done

# Each of these tests occupies one processor at most.
.PHONY: unit-sdks
unit-sdks:
	cd sdk/python && /usr/bin/python3 -m unittest discover -s tests
	cd examples/website/python && PYTHONPATH=../../../sdk/python /usr/bin/python3 -m unittest
	cd examples/snapshot-schedule && PYTHONPATH=../../sdk/python /usr/bin/python3 -m unittest
	cd sdk/typescript && npm test --silent
	cd examples/website/typescript && npm test --silent

.PHONY: sdks
sdks: system $(TYPESCRIPT_BUILT) ## Build the dependencies of the hooks in Python and TypeScript

.PHONY: system
system:
	@tools/system.sh

$(TYPESCRIPT): sdk/typescript/package-lock.json | system
	cd sdk/typescript && npm ci --silent --no-audit --no-fund
	@touch $@

$(TYPESCRIPT_BUILT): $(shell find sdk/typescript/src) sdk/typescript/tsconfig.json $(TYPESCRIPT)
	cd sdk/typescript && npm run --silent build

$(WEBSITE): examples/website/typescript/package-lock.json sdk/typescript/package.json | system
	cd examples/website/typescript && npm ci --silent --no-audit --no-fund
	@touch $@

$(LINKS): tools/links/package-lock.json | system
	cd tools/links && npm ci --silent --no-audit --no-fund
	@touch $@

.PHONY: stubs
stubs: $(BIN)/buf
	@examples/stubs/packages.sh ruby java cpp go
	@examples/stubs/build.sh ruby java cpp go

.PHONY: fuzz
fuzz: ## Run each fuzz target (FUZZTIME=5000x: executions of each, or a duration: 10m)
	tools/fuzz.sh $(FUZZTIME)

.PHONY: integration
integration: controlplane jaeger-build helm-build compare-build sdks stubs $(BIN)/controller-gen ## Run the integration tests on a real control plane, with the race detector (K8S=1.31: of that version)
	go test -race -vet=off -p $(PLANES) -parallel $(TESTS) -timeout 30m $(TESTFLAGS) $(LONGEST) ./test/... \
	  $$(go list ./... | grep '$(INSIDE)')

.PHONY: bench
bench: controlplane build ## Measure on a real control plane, and print tables (BENCH="-children 1000": its flags)
	@go build -o $(BIN)/bench ./test/bench/live
	@go build -o $(BIN)/bench-hook ./test/bench/hook
	@go build -o $(BIN)/bench-bare ./test/bench/bare
	@exec $(BIN)/bench $(BENCH)

.PHONY: compare
compare: controlplane compare-build ## Compare one controller, written in several ways, and print tables (COMPARE="-sites 50": its flags)
	@exec $(BIN)/compare $(COMPARE)

# The program with controller-runtime is a module of its own, so that the engine does not depend on it.
.PHONY: compare-build
compare-build: build
	go build -o $(BIN)/compare ./test/bench/compare
	for way in runtime actor hook; do go build -o $(BIN)/compare-$$way ./test/bench/compare/$$way; done
	go -C test/bench/compare/controllerruntime build -o $(CURDIR)/$(BIN)/compare-controller-runtime .

.PHONY: microbench
microbench: ## Run the benchmarks beside the code, with allocations
	go test -run '^$$' -bench . -benchmem -p 1 $(TESTFLAGS) $$(go list ./... | grep -v '^$(MODULE)/test/')
	for module in $(MODULES); do go -C $$module test -run '^$$' -bench . -benchmem -p 1 $(TESTFLAGS) ./...; done

.PHONY: bench-check
bench-check: $(BIN)/benchstat ## Compare the benchmarks beside the code with their baseline (MICRO="NoopSync": only these; "-update" rewrites it)
	@tools/bench-check.sh $(MICRO)

.PHONY: api
api: ## Rewrite the list of the public Go API, tools/api/api.txt
	@go -C tools build -o $(CURDIR)/$(BIN)/api ./api
	@$(BIN)/api -write

.PHONY: links
links: $(LINKS) ## Check the links and anchors of all Markdown files
	@git ls-files -z --cached --others --exclude-standard '*.md' | \
	  xargs -0 tools/links/node_modules/.bin/remark --rc-path tools/links/remark.json --quiet --frail --no-stdout

.PHONY: docs
docs: $(BIN)/hugo ## Build the site of the documentation into .cache/site
	@tools/site/build.sh

.PHONY: lint
lint: links $(BIN)/buf $(BIN)/golangci-lint ## Check links, style, import rules, the public API, and the contract
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	tools/breaking.sh
	$(BIN)/golangci-lint run ./...
	for module in $(MODULES); do (cd $$module && $(CURDIR)/$(BIN)/golangci-lint run ./...); done
	@go -C tools build -o $(CURDIR)/$(BIN)/api ./api
	$(BIN)/api -check

.PHONY: gen
gen: $(TOOLS) $(TYPESCRIPT) ## Generate the code of the contract in all languages, deep copies and CRDs
	tools/gen.sh

.PHONY: check-gen
check-gen: $(TOOLS) $(TYPESCRIPT) ## Fail when a generated file is stale
	tools/gen.sh --check

.PHONY: build
build: ## Build .cache/bin/hookloop, and the hooks of the examples that are Go programs
	go build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/hookloop
	go build -o $(BIN)/ $$(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./examples/...)
	go -C examples/hello-grpc build -tags otlp -o $(CURDIR)/$(BIN)/
	go -C examples/jsonnet-hook build -o $(CURDIR)/$(BIN)/

.PHONY: image
image: ## Build the container image (IMAGE=name:tag)
	docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMAGE) .

.PHONY: chart
chart: $(BIN)/helm ## Pack the Helm chart into .cache
	$(BIN)/helm package manifests/helm/hookloop --destination .cache

.PHONY: release
release: controlplane helm-build system ## Build all packages of the last commit into .cache/release/dist, and upload nothing
	@go -C tools build -o $(CURDIR)/$(BIN)/release ./release
	@exec $(BIN)/release -platforms $(PLATFORMS)

.PHONY: release-check
release-check: release $(BIN)/controller-gen ## Prove the packages by projects outside the repository
	@PLATFORMS=$(PLATFORMS) tools/release/check.sh

.PHONY: controlplane
controlplane: ## Build the control plane: etcd, kube-apiserver, kube-controller-manager, kubectl
	@K8S=$(K8S) test/controlplane/build.sh

.PHONY: cluster
cluster: controlplane ## Run a control plane in the foreground
	@go build -o $(BIN)/cluster ./test/cluster/cmd/cluster
	@exec $(BIN)/cluster

.PHONY: jaeger
jaeger: jaeger-build ## Run a Jaeger in the foreground
	@go build -o $(BIN)/jaeger-run ./test/jaeger/cmd/jaeger
	@exec $(BIN)/jaeger-run

.PHONY: jaeger-build
jaeger-build: ## Build the Jaeger, unless DEMO_JAEGER or the PATH has one
	@test/jaeger/build.sh

.PHONY: helm-build
helm-build: $(BIN)/helm ## Build Helm

.PHONY: ci
ci: ## Run the CI script
	.ci/run

.PHONY: clean
clean: ## Remove all build output
	rm -rf .cache

$(addprefix $(BIN)/,$(PINNED)): tools/go.mod tools/go.sum
	@tools/build.sh tools $(@F)

$(BIN)/jaeger: test/jaeger/program/go.mod test/jaeger/program/go.sum
	@tools/build.sh test/jaeger/program jaeger
