package integration

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// publicControllers are the controllers of TestPublicSurface; HOOK, UNARY and STREAM are addresses.
// One of them refers to a hook that does not exist.
const publicControllers = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME-web, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  - {apiVersion: v1, resource: secrets}
  - apiVersion: $GROUP/v1
    resource: balls
    updateStrategy: {method: RollingInPlace, statusChecks: {conditions: [{type: Ready, status: "True"}]}}
  hooks:
    sync: {webhook: {url: "HOOK/composite-v1/sync"}}
    finalize: {webhook: {url: "HOOK/composite-v1/finalize"}}
    customize: {webhook: {url: "HOOK/composite-v1/customize"}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME-site, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: sites}
  childResources:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: Recreate}}
  hooks:
    sync: {version: v2, webhook: {url: "HOOK/composite-v2/sync"}}
    finalize: {version: v2, webhook: {url: "HOOK/composite-v2/finalize"}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: $NAME-door, labels: LABELS}
spec:
  resources:
  - {apiVersion: $GROUP/v1, resource: doors, labelSelector: {matchLabels: {tier: front}}}
  attachments:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  hooks:
    sync: {webhook: {url: "HOOK/decorator-v1/sync"}}
    finalize: {webhook: {url: "HOOK/decorator-v1/finalize"}}
    customize: {webhook: {url: "HOOK/decorator-v1/customize"}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: $NAME-gate, labels: LABELS}
spec:
  resources:
  - {apiVersion: $GROUP/v1, resource: gates}
  attachments:
  - {apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}
  hooks:
    sync: {version: v2, webhook: {url: "HOOK/decorator-v2/sync"}}
    finalize: {version: v2, webhook: {url: "HOOK/decorator-v2/finalize"}}
    customize: {version: v2, webhook: {url: "HOOK/decorator-v2/customize"}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME-unary, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: wires}
  childResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks:
    sync: {grpc: {target: "UNARY", mode: Unary, insecure: true}}
    finalize: {grpc: {target: "UNARY", mode: Unary, insecure: true}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME-stream, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: beams}
  childResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks:
    sync: {grpc: {target: "STREAM", mode: Stream, insecure: true}}
    finalize: {grpc: {target: "STREAM", mode: Stream, insecure: true}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME-nowhere, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: nowheres}
  childResources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {url: "HOOK/nowhere/sync"}}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME-invalid, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {inproc: {name: nobody}}}
`

// surface is the run that TestPublicSurface records.
type surface struct {
	*kit.Kit
	t        *testing.T
	hook     *recordingHook
	stories  map[string]*strings.Builder // by the name of their file
	title    string                      // of the current story
	story    *strings.Builder            // its objects
	pokes    int
	complete map[string]bool // paths with a complete request in the story
}

// TestPublicSurface runs parents of every kind of controller from creation to deletion, and
// compares everything that a user may depend on with golden files: requests to webhooks, the
// objects that the engine writes, conditions, Events, metric families, log messages and spans. The
// CRDs are files already, in manifests/crds. Run it with -update to rewrite the files.
func TestPublicSurface(t *testing.T) {
	k := start(t)
	s := &surface{
		Kit: k, t: t, hook: newRecordingHook(t), stories: map[string]*strings.Builder{}, complete: map[string]bool{},
	}
	spans := newSpanSink(k)
	log := &safeBuffer{}
	engine, labels := loggingEngine(k, log, "--tracing-endpoint="+spans.url, "--rewrite-limit=5", "--rewrite-pause=1h",
		"--leader-election", "--leader-election-namespace="+k.Namespace)
	s.declare(labels)
	s.runComposite()
	s.runCompositeV2()
	s.runDecorator("Door", "decorator-v1")
	s.runDecorator("Gate", "decorator-v2")
	s.runGRPC("Wire")
	s.runGRPC("Beam")
	s.showControllers()

	scrape, err := serve.Fetch(t.Context(), "http://"+engine.Metrics+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Stop(kit.Deadline); err != nil {
		t.Fatal(err)
	}
	golden(t, "help.txt", helpTexts(t))
	goldenFolder(t, "story", s.stories)
	golden(t, "events.txt", s.events())
	golden(t, "metrics.txt", metricFamilies(scrape))
	golden(t, "log.txt", normalise(k, logLines(t, log.String())))
	golden(t, "spans.txt", normalise(k, spans.text()))
}

// safeBuffer is a buffer that is safe for concurrent use.
type safeBuffer struct {
	mu     sync.Mutex // guards buffer
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(data)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// loggingEngine is ownEngine with a log.
func loggingEngine(k *kit.Kit, log *safeBuffer, flags ...string) (*serve.Engine, map[string]any) {
	k.Helper()
	e, err := serve.Start(k.Context(), serve.Config{
		Kubeconfig: k.Cluster.Kubeconfig(), Log: log, Flags: append(flags, "--target-label-selector="+own+",test="+k.Name),
	})
	if e != nil {
		k.Own(e.Process)
	}
	if err != nil {
		k.Fatal(err)
	}
	return e, map[string]any{"engine": "own", "test": k.Name}
}

// publicKinds are the kinds of the parents and of a child.
var publicKinds = []string{"Web", "Site", "Door", "Gate", "Wire", "Beam", "Ball"}

// declare installs the kinds and declares the controllers.
func (s *surface) declare(labels map[string]any) {
	for _, kind := range publicKinds {
		s.CRD(kind, "Namespaced")
	}
	unary, _ := strings.CutPrefix(serveGRPC(s.t), "grpc:")
	s.Apply(strings.NewReplacer(
		"HOOK", s.hook.url, "UNARY", unary, "STREAM", mirrorProcess(s.Kit, "").address,
		"LABELS", fmt.Sprintf("{engine: %s, test: %s}", labels["engine"], labels["test"]),
	).Replace(publicControllers))
	for name, reason := range map[string]string{
		"web": "Running", "site": "Running", "unary": "Running", "stream": "Running",
		"nowhere": "ParentNotFound", "invalid": "InvalidSpec",
	} {
		s.awaitController(kit.CompositeController, name, reason)
	}
	s.awaitController(decoratorController, "door", "Running")
	s.awaitController(decoratorController, "gate", "Running")
}

const decoratorController = "metacontroller.k8s.io/v1alpha1/DecoratorController"

// awaitController waits until a controller's condition Ready has a reason; the end of the test
// deletes the controller.
func (s *surface) awaitController(kind, name, reason string) {
	s.Helper()
	s.Cleanup(func() { s.Delete(kind, s.Name+"-"+name) })
	s.Eventually(name+" is "+reason, func() error {
		if c := kit.Condition(s.Get(kind, s.Name+"-"+name), "Ready"); c["reason"] != reason {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
}

// object applies an object with a spec in YAML's flow style.
func (s *surface) object(kind, name, metadata, spec string) {
	s.Helper()
	s.Apply("apiVersion: $GROUP/v1\nkind: " + kind +
		"\nmetadata: {name: " + name + ", namespace: $NS" + metadata + "}\nspec: {" + spec + "}")
}

// settings is a related object of the parents.
const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: $NS, labels: {use: here}}
data: {big: "1"}
`

// relatedSettings holds the answer of a customize hook, and the first answer of a finalize hook.
const relatedSettings = `
  customized: {relatedResources: [{apiVersion: v1, resource: configmaps, names: [settings], namespace: $NS}]},
  finally: {finalized: false}`

// publicBalls are two Balls of a colour, in YAML.
func publicBalls(colour string) string {
	const ball = "{apiVersion: $GROUP/v1, kind: Ball, metadata: {name: ball-%d}, " +
		"spec: {colour: %s, size: 9007199254740993}}"
	return fmt.Sprintf(ball, 0, colour) + ", " + fmt.Sprintf(ball, 1, colour)
}

// runComposite runs a parent from creation to deletion, with a webhook of version v1.
func (s *surface) runComposite() {
	s.Apply(settings)
	web := func(text, colour, more string) {
		children := page("page", "text: "+text) + ", " + publicBalls(colour) + more
		s.object("Web", "web", ", labels: {app: web}",
			relatedSettings+", answer: {status: {text: "+text+"}, children: ["+children+"]}")
	}
	web("one", "red", "")
	awaitColours(s.Kit, "red red")
	await(s.Kit, "v1/ConfigMap", "page", "data.text", "one")
	ready(s.Kit, "ball-0", "True")
	ready(s.Kit, "ball-1", "True")
	s.record("Web", "web", "created", "Ball ball-0", "v1/ConfigMap page")

	web("two", "red", "")
	await(s.Kit, "v1/ConfigMap", "page", "data.text", "two")
	s.record("Web", "web", "a child edited", "v1/ConfigMap page")

	web("two", "blue", "")
	awaitUpdated(s.Kit, "RolloutWaiting", `Ball "ball-0" has status.observedGeneration 1, expected 2`)
	s.record("Web", "web", "a rolling update that waits")
	ready(s.Kit, "ball-0", "True")
	awaitColours(s.Kit, "blue blue")
	ready(s.Kit, "ball-1", "True")
	awaitUpdated(s.Kit, "OnLatestRevision", "")
	s.record("Web", "web", "the rolling update is complete", "Ball ball-1")

	web("two", "blue", ", {apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: b}}")
	await(s.Kit, "v1/Secret", "key", "data.a", "Yg==")
	web("two", "blue", ", {apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: c}}")
	s.awaitCondition("Web", "web", "ChangesHeldBack", "")
	s.record("Web", "web", "a change is held back")

	web("two", "blue", ", {apiVersion: v1, kind: Service, metadata: {name: undeclared}}")
	s.fail("Web", "web", "an answer with a child that is not declared", "Service")
	s.Patch("Web", "web", "spec: {refuse: the hook is broken}")
	s.fail("Web", "web", "the hook answers status 500", "the hook is broken")
	s.Patch("Web", "web", "spec: {refuse: null}")
	web("three", "blue", "")
	await(s.Kit, "v1/ConfigMap", "page", "data.text", "three")
	s.AwaitSynced("Web", "web")
	s.record("Web", "web", "it has recovered")
	s.Eventually("the circuit opens", func() error {
		s.Patch("v1/ConfigMap", "page", "data: {text: theirs}")
		if c := kit.Condition(s.Get("Web", "web"), "Synced"); c["reason"] != "CircuitOpen" {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})
	s.fail("Web", "web", "a second writer of a child", "over and over")
	s.remove("Web", "web")
}

// publicSite is a spec with an answer that has all fields of version v2.
const publicSite = `
  finally: {finalized: false},
  answer: {
    status: {text: one},
    children: [
      {apiVersion: v1, kind: ConfigMap, metadata: {name: first}, data: {text: one}},
      {apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {text: one}}],
    childStates: [
      {apiVersion: v1, kind: ConfigMap, name: first},
      {apiVersion: v1, kind: ConfigMap, name: second,
       dependsOn: [{apiVersion: v1, kind: ConfigMap, name: first, condition: Done}]}],
    conditions: [{type: Ready, status: "False", reason: Starting, message: 1 of 3 pods is up}],
    events: [
      {type: Normal, reason: Scaled, message: from 1 to 2},
      {type: Warning, reason: Slow, message: the disk is slow}],
    results: [
      {severity: Warning, reason: Deprecated, message: spec.size is old},
      {severity: Info, reason: Quiet, message: for the log}],
    requirements: [{name: settings, apiVersion: v1, resource: configmaps, names: [settings], namespace: $NS}]}`

// runCompositeV2 runs a parent from creation to deletion, with a webhook of version v2 and an
// answer with all its fields.
func (s *surface) runCompositeV2() {
	s.object("Site", "site", "", publicSite)
	s.awaitCondition("Site", "site", "DependenciesMet", "Done")
	s.record("Site", "site", "created", "v1/ConfigMap first")
	s.Patch("Site", "site", `spec: {answer: {childStates: [
		{apiVersion: v1, kind: ConfigMap, name: second, dependsOn: [{apiVersion: v1, kind: ConfigMap, name: first}]}]}}`)
	await(s.Kit, "v1/ConfigMap", "second", "data.text", "one")
	s.record("Site", "site", "the dependency is met", "v1/ConfigMap second")
	s.Patch("Site", "site",
		"spec: {answer: {results: [{severity: Fatal, reason: NoQuota, message: the account is empty}]}}")
	s.fail("Site", "site", "a fatal result", "the account is empty")
	s.Patch("Site", "site", "spec: {answer: {results: null, conditions: [{type: Synced, status: 'True'}]}}")
	s.fail("Site", "site", "an answer with a condition of the engine", "Synced")
	s.Patch("Site", "site", "spec: {answer: {conditions: null}}")
	s.AwaitSynced("Site", "site")
	s.remove("Site", "site")
}

// runDecorator runs a target from creation to deletion.
func (s *surface) runDecorator(kind, pages string) {
	name := strings.ToLower(kind)
	target := func(text string) {
		s.object(kind, name, ", labels: {tier: front, old: label}", relatedSettings+`, answer: {status: {text: `+text+`},
			labels: {new: label, old: null}, annotations: {note: `+text+`}, attachments: [`+page(pages, "text: "+text)+`]}`)
	}
	target("one")
	await(s.Kit, "v1/ConfigMap", pages, "data.text", "one")
	await(s.Kit, kind, name, "status.text", "one")
	s.record(kind, name, "created", "v1/ConfigMap "+pages)
	s.Patch(kind, name, "spec: {answer: {attachments: ["+page(pages, "text: two")+"]}}")
	await(s.Kit, "v1/ConfigMap", pages, "data.text", "two")
	s.record(kind, name, "edited", "v1/ConfigMap "+pages)
	s.Patch(kind, name, `spec: {answer: {labels: {"a b": c}}}`)
	s.fail(kind, name, "an answer with a bad label", `labels["a b"]`)
	s.Patch(kind, name, `spec: {answer: {labels: {"a b": null}}}`)
	s.remove(kind, name)
}

// runGRPC runs a parent from creation to deletion, with a hook over gRPC. The requests are those of
// the contract, in proto/.
func (s *surface) runGRPC(kind string) {
	name := strings.ToLower(kind)
	s.object(kind, name, "",
		"finally: {finalized: false}, answer: {status: {text: one}, children: ["+page(name, "text: one")+"]}")
	await(s.Kit, "v1/ConfigMap", name, "data.text", "one")
	await(s.Kit, kind, name, "status.text", "one")
	s.record(kind, name, "created", "v1/ConfigMap "+name)
	s.Patch(kind, name, "spec: {refuse: it is too late}")
	s.fail(kind, name, "the hook refuses", "it is too late")
	s.Patch(kind, name, "spec: {refuse: null, answer: {children: []}}")
	await(s.Kit, "v1/ConfigMap", name, "metadata.name", "")
	s.AwaitSynced(kind, name)
	s.remove(kind, name)
}
