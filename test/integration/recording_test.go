package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestRecordings records the syncs of a parent with a Secret, and asks the hook the recorded
// questions again.
func TestRecordings(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	dir := filepath.Join(t.TempDir(), "recordings")
	_, labels := ownEngine(k, "--record-dir", dir, "--record-per-parent", "2")
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/secrets InPlace"}, Sync: mirror(t), Labels: labels})
	k.Apply(parent("web",
		"{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: hunter2-hunter2}}"))
	await(k, "v1/Secret", "login", "type", "Opaque")
	awaitSync(k, "web")
	awaitSync(k, "web")
	k.Eventually("two recordings", func() error {
		if n := len(recorded(t, dir)); n != 2 {
			return errors.New("there are no two recordings")
		}
		return nil
	})
	for _, text := range recorded(t, dir) {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "masked-1") {
			t.Errorf("the value of the Secret is not masked:\n%s", text)
		}
	}
	replay(t, dir, mirror(t))
}

// recordedControllers are controllers of each kind and transport. NAME is the kit's name; LABELS
// are those of the engine.
const recordedControllers = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: NAME-unary, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: unarys}
  childResources: [{apiVersion: v1, resource: secrets, updateStrategy: {method: InPlace}}]
  hooks: {sync: {version: v2, grpc: {target: "UNARY", mode: Unary, insecure: true}}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: NAME-stream, labels: LABELS}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources: [{apiVersion: v1, resource: secrets, updateStrategy: {method: InPlace}}]
  hooks: {sync: {version: v2, grpc: {target: "STREAM", mode: Stream, insecure: true}}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: NAME-decorator, labels: LABELS}
spec:
  resources: [{apiVersion: $GROUP/v1, resource: targets}]
  attachments: [{apiVersion: v1, resource: secrets, updateStrategy: {method: InPlace}}]
  hooks: {sync: {webhook: {url: "DECORATOR"}}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: MapController
metadata: {name: NAME-map, labels: LABELS}
spec:
  parentResource: {apiVersion: $GROUP/v1, resource: policys}
  inputResources: [{apiVersion: v1, resource: secrets}]
  outputResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks:
    map: {version: v2, grpc: {target: "MAP", insecure: true}}
    customize: {version: v2, grpc: {target: "MAP", insecure: true}}
`

// TestRecordingsOfEachTransport records a decorator over a webhook, a map controller, and composite
// controllers over unary calls and over a stream. Each recording is whole, also after a delta, has
// no value of a Secret, and gives the same answer when the hook is asked again.
func TestRecordingsOfEachTransport(t *testing.T) {
	k := start(t)
	for _, kind := range []string{"Unary", "Web", "Target", "Policy"} {
		k.CRD(kind, "Namespaced")
	}
	dir := filepath.Join(t.TempDir(), "recordings")
	_, labels := ownEngine(k, "--record-dir", dir)
	addresses := map[string]string{
		"UNARY": strings.TrimPrefix(serveGRPC(t), "grpc:"), "STREAM": mirrorProcess(k, "").address,
		"DECORATOR": mirror(t), "MAP": serveMap(t, copyHook),
	}
	with := []string{"NAME", k.Name, "LABELS", fmt.Sprintf("{engine: %s, test: %s}", labels["engine"], labels["test"])}
	for name, address := range addresses {
		with = append(with, name, address)
	}
	k.Apply(strings.NewReplacer(with...).Replace(recordedControllers))
	k.Cleanup(func() {
		for suffix, kind := range map[string]string{
			"-unary": "CompositeController", "-stream": "CompositeController", "-decorator": "DecoratorController",
			"-map": "MapController",
		} {
			k.Delete("metacontroller.k8s.io/v1alpha1/"+kind, k.Name+suffix)
		}
	})
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, stringData: {password: hunter2-NAME}}"
	object := func(kind, name, field string) string {
		return fmt.Sprintf("apiVersion: $GROUP/v1\nkind: %s\nmetadata: {name: %s, namespace: $NS}\n"+
			"spec: {answer: {%s: [%s]}}", kind, name, field, strings.ReplaceAll(secret, "NAME", name))
	}
	k.Apply(object("Unary", "unary", "children"))
	k.Apply(object("Web", "stream", "children"))
	k.Apply(object("Target", "decorated", "attachments"))
	k.Object("Policy", "policy").Apply()
	for _, name := range []string{"unary", "stream", "decorated"} {
		await(k, "v1/Secret", name, "type", "Opaque")
	}
	await(k, "v1/ConfigMap", "copy-stream", "metadata.name", "copy-stream")
	k.Patch("v1/Secret", "stream", "stringData: {second: hunter2-delta}") // one changed child on the stream
	for controller, test := range map[string]struct{ part, hook string }{
		"composite-" + k.Name + "-unary":     {"masked-1", addresses["UNARY"]},
		"composite-" + k.Name + "-stream":    {`"second"`, addresses["STREAM"]},
		"decorator-" + k.Name + "-decorator": {"attachments", addresses["DECORATOR"]},
		"map-" + k.Name + "-map":             {`"operation": "customize"`, addresses["MAP"]},
	} {
		folder := filepath.Join(dir, controller)
		k.Eventually(controller+" has recorded "+test.part, func() error {
			if _, err := os.Stat(folder); err != nil {
				return err
			}
			all := strings.Join(recorded(t, folder), "\n")
			if strings.Contains(all, "hunter2") {
				t.Fatalf("%s has a value of a Secret:\n%s", controller, all)
			}
			if !strings.Contains(all, test.part) {
				return fmt.Errorf("it has %d bytes", len(all))
			}
			return nil
		})
		replay(t, folder, test.hook)
	}
}

// replay asks a hook all recorded questions of a folder again. The answers must be the same.
func replay(t *testing.T, folder, address string) {
	t.Helper()
	args := []string{"replay", folder, "--hook", address}
	if !strings.Contains(address, "://") {
		args = append(args, "--insecure")
	}
	out, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 with another answer") {
		t.Errorf("hookloop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// recorded returns the recordings in a folder.
func recorded(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a newer one has replaced it
			return nil
		}
		all = append(all, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
