package tracing

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
)

// canaries are values of a Secret, before and after its change.
var canaries = []string{"canary-of-the-first-day", "canary-of-the-second-day"}

// TestSecretsStaySecret creates, changes and repairs a Secret: its data is in no span, no log line
// and no Event.
func TestSecretsStaySecret(t *testing.T) {
	k, j := start(t)
	hook := k.Hook(kit.Mirror)
	k.CRD("Vault", "Namespaced")
	k.Run(kit.Composite{
		Parent: "vaults", Sync: hook.URL, Children: []string{"v1/secrets InPlace"}, Labels: map[string]any{"engine": traced},
	})
	for _, canary := range canaries {
		k.Apply(`
apiVersion: $GROUP/v1
kind: Vault
metadata: {name: safe, namespace: $NS}
spec: {answer: {children: [{apiVersion: v1, kind: Secret, metadata: {name: safe}, 
  stringData: {key: ` + canary + `}, data: {other: ` + encoded(canary) + `}}]}}`)
		holds(k, canary)
	}
	k.Patch("v1/Secret", "safe", "stringData: {key: tampered, other: tampered}")
	holds(k, canaries[1])
	k.Settled(silence)
	k.Apply(`
apiVersion: $GROUP/v1
kind: Vault
metadata: {name: safe, namespace: $NS}
spec: {answer: {children: [{apiVersion: v1, kind: Secret, metadata: {name: safe},
  data: {other: "` + canaries[1] + `"}}]}}`) // is not base64
	k.Eventually("the refused write is on record", func() error {
		if len(k.Events("safe", "SyncError")) == 0 {
			return errors.New("there is no Event")
		}
		return nil
	})
	k.Eventually("Jaeger has the Secret's writes, the refused one too", func() error {
		text := traces(k, j.URL())
		if n := strings.Count(text, `"value":"secrets.v1"`); n < 4 || !strings.Contains(text, `"value":"BadRequest"`) {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
	checkClean(t, "Jaeger", traces(k, j.URL()))
	checkClean(t, "the engine's log", shared.engine.Output())
	for _, e := range k.List("v1/Event") {
		checkClean(t, "an Event", fmt.Sprint(e.Object))
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// holds waits until the Secret has the value.
func holds(k *kit.Kit, canary string) {
	k.Helper()
	k.Eventually("the Secret holds its value", func() error {
		o, err := k.Lookup("v1/Secret", "safe")
		if err != nil {
			return err
		}
		if data, _ := o.Object["data"].(map[string]any); data["other"] != encoded(canary) {
			return fmt.Errorf("its data is %v", data)
		}
		return nil
	})
}

// traces returns all traces of the engine about the kit's namespace, as Jaeger returns them.
func traces(k *kit.Kit, base string) string {
	k.Helper()
	query := url.Values{
		"service": {"hookloop"},
		"limit":   {"1000"},
		"start":   {"0"},
		"tags":    {`{"k8s.namespace.name":"` + k.Namespace + `"}`},
	}
	request, err := http.NewRequestWithContext(k.Context(), http.MethodGet, base+"/api/traces?"+query.Encode(), nil)
	if err != nil {
		k.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		k.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		k.Fatalf("Jaeger answers %s, %v", response.Status, err)
	}
	return string(body)
}

// checkClean searches for the Secret's values, in plain text and in base64.
func checkClean(t *testing.T, where, text string) {
	t.Helper()
	for _, canary := range append([]string{"tampered", encoded("tampered")}, canaries...) {
		for _, form := range []string{canary, encoded(canary)} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s has %q of the Secret: …%s…", where, form, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
}
