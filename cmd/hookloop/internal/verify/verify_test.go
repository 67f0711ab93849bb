package verify

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func TestWrongOptions(t *testing.T) {
	good := file(t, declaring)
	for _, test := range []struct {
		name    string
		options Options
		want    string
	}{
		{"no address", Options{}, "--hook: is missing"},
		{"no address of sync", Options{Addresses: []string{"finalize=127.0.0.1:1"}}, "no address of sync"},
		{"operation", Options{Addresses: []string{"observe=127.0.0.1:1"}}, `got operation "observe"`},
		{"two addresses", Options{Addresses: []string{"a:1", "b:1"}}, "after another address"},
		{"scheme", Options{Addresses: []string{"xds:///hook"}}, "expected host:port, dns:///host:port or unix:///path"},
		{"kind", Options{Addresses: []string{"a:1"}, Kind: "operator"}, `--kind: got "operator"`},
		{"kind of another controller", Options{Addresses: []string{"a:1"}, Kind: "decorator", Files: []string{good}},
			"the file declares a CompositeController"},
		{"version", Options{Addresses: []string{"http://a/sync"}, Version: "v3"}, "--hook-version"},
		{"plain text with a token", Options{Addresses: []string{"a:1"}, Security: Security{Insecure: true, TokenFile: "t"}},
			"--insecure: is plain text"},
		{"certificate without its key", Options{Addresses: []string{"a:1"}, Security: Security{Cert: "tls.crt"}},
			"--cert: expected both"},
		{"CA that is none", Options{Addresses: []string{"a:1"}, Security: Security{CA: good}}, "has no certificate"},
		{"missing file", Options{Addresses: []string{"a:1"}, Files: []string{"/none.yaml"}}, "no such file"},
		{"no YAML", Options{Addresses: []string{"a:1"}, Files: []string{file(t, "a: b: c")}}, "is not YAML"},
		{"folder without manifests", Options{Addresses: []string{"a:1"}, Files: []string{t.TempDir()}},
			"has no .yaml, .yml or .json file"},
		{"folder without a controller", Options{
			Addresses: []string{"a:1"}, Files: []string{filepath.Dir(file(t, smallParent))},
		}, "got no controller"},
		{"stdin", Options{Addresses: []string{"a:1"}, Files: []string{"-"}}, "stdin is not read"},
		{"too large", Options{Addresses: []string{"a:1"}, Files: []string{
			file(t, "#"+strings.Repeat("x", 33<<20)),
		}}, "32 MiB"},
		{"no controller", Options{Addresses: []string{"a:1"}, Files: []string{file(t, smallParent)}}, "got no controller"},
		{"two controllers", Options{Addresses: []string{"a:1"}, Files: []string{good, good}}, "expected one controller"},
		{"child resource without a CRD", Options{Addresses: []string{"a:1"}, Files: []string{
			file(t, edited(declaring, "resource: configmaps", "resource: gadgets")),
		}}, "gadgets.v1, is not known here"},
		{"invalid controller", Options{Addresses: []string{"a:1"}, Files: []string{
			file(t, edited(declaring, "url:", "uri:")),
		}}, "spec.hooks.sync.webhook"},
		{"parent of another kind", Options{Addresses: []string{"a:1"}, Files: []string{good}, Parent: file(t,
			"{apiVersion: v1, kind: Pod, metadata: {name: a}}")}, "--parent: got a Pod.v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Verify(t.Context(), test.options)
			var usage *UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a UsageError with %q", err, test.want)
			}
		})
	}
}

// TestDefaultsOfTheCRD fills in what the API server would.
func TestDefaultsOfTheCRD(t *testing.T) {
	crd := file(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: demos.demo.example.com}
spec:
  group: demo.example.com
  scope: Cluster
  names: {kind: Demo, plural: demos}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              port: {type: integer, default: 80}
              nested: {items: {properties: {size: {default: 1}}}}
`)
	s, err := load(Options{Files: []string{file(t, declaring), crd}})
	if err != nil {
		t.Fatal(err)
	}
	if s.parentResource.Namespaced {
		t.Error("the parents have a namespace, want the CRD's scope")
	}
	spec, _ := s.parent.Field("spec")
	for _, want := range []string{`"port":80`, `"size":1`} {
		if !strings.Contains(string(spec), want) {
			t.Errorf("got %s, want it to contain %s", spec, want)
		}
	}
}

// TestClientCertificate calls a hook over mutual TLS with a certificate, without one, and without
// TLS.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	authority := tlstest.NewAuthority(t)
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := authority.Issue("engine")
	secure := credentials.NewTLS(authority.Server(authority))
	address := serveOn(t, func(s *grpc.Server) {
		healthv1.RegisterHealthServer(s, health.NewServer())
		compositev1.RegisterCompositeHookServiceServer(s, &grpcHook{})
	}, grpc.Creds(secure))
	own := Security{
		CA: write("ca.crt", authority.PEM), Cert: write("tls.crt", cert), Key: write("tls.key", key),
	}
	report, err := Verify(t.Context(), Options{Addresses: []string{address}, Security: own})
	if err != nil {
		t.Fatal(err)
	}
	if report.Faults() > 0 || report.Questions[overGRPC] < 10 {
		t.Error("with a certificate:\n" + text(t, report))
	}
	for name, security := range map[string]Security{
		"without a certificate": {CA: own.CA},
		"without TLS":           {Insecure: true},
	} {
		report, err := Verify(t.Context(), Options{Addresses: []string{address}, Security: security})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{ruleUnreachable}, ids(report, Fault)); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s\n%s", name, diff, text(t, report))
		}
	}
}

// TestReportHasNoEscapes reports a text with sequences that a terminal would obey.
func TestReportHasNoEscapes(t *testing.T) {
	r := &Report{}
	r.add(Finding{Rule: rules[0], Got: "a\x1b[31mb\u009b2Jc\u202ed\u2028e\nf\x7fg 日本"})
	if got, want := r.Findings[0].Got, "a [31mb 2Jc d e f g 日本"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWrongOptionsOfGRPC sets options that no call would use, or that leave no time for one.
func TestWrongOptionsOfGRPC(t *testing.T) {
	for want, o := range map[string]Options{
		"--timeout: got -1s, expected a positive duration": {Timeout: -time.Second},
		`--hook-version: got "v9", expected v1 or v2`:      {Version: "v9"},
	} {
		o.Addresses = []string{"127.0.0.1:1"}
		var usage *UsageError
		if _, err := Verify(t.Context(), o); !errors.As(err, &usage) || usage.Problem != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
