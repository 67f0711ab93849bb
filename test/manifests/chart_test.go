package manifests

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// none is an empty default.
var none = map[string]any{}

// TestDefaultValues holds the parameters of Metacontroller's chart, as its book lists them. command
// and image.repository name the program; gateway and networkPolicy are Hookloop's own.
func TestDefaultValues(t *testing.T) {
	every := []any{"*"}
	want := map[string]any{
		"command":            "/usr/bin/hookloop",
		"commandArgs":        []any{"--zap-log-level=4", "--discovery-interval=20s", "--cache-flush-interval=30m"},
		"rbac":               map[string]any{"create": true},
		"image":              map[string]any{"repository": "hookloop/hookloop", "pullPolicy": "IfNotPresent", "tag": ""},
		"imagePullSecrets":   []any{},
		"nameOverride":       "",
		"namespaceOverride":  "",
		"fullnameOverride":   "",
		"serviceAccount":     map[string]any{"create": true, "annotations": none, "name": ""},
		"podAnnotations":     none,
		"podSecurityContext": none,
		"securityContext":    none,
		"resources":          none,
		"nodeSelector":       none,
		"tolerations":        []any{},
		"affinity":           none,
		"priorityClassName":  "",
		"clusterRole": map[string]any{
			"aggregationRule": none,
			"rules":           []any{map[string]any{"apiGroups": every, "resources": every, "verbs": every}},
		},
		"replicas":            float64(1),
		"podDisruptionBudget": none,
		"service":             map[string]any{"enabled": false, "ports": []any{}},
		"gateway":             map[string]any{"enabled": false, "port": float64(9444), "tlsSecret": "", "clientCASecret": ""},
		"networkPolicy": map[string]any{
			"enabled": true, "hookNamespaces": []any{}, "hookLabels": none,
			"gatewayFrom": []any{
				map[string]any{
					"namespaceSelector": none,
					"podSelector":       map[string]any{"matchLabels": map[string]any{"hookloop.dev/dials-in": "true"}},
				},
			},
		},
	}
	if diff := cmp.Diff(want, values(t, path("helm", "hookloop", "values.yaml"))); diff != "" {
		t.Errorf("values.yaml (-want +got):\n%s", diff)
	}
}

func values(t *testing.T, file string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEveryValueCounts has a values file that sets every parameter, and finds each of its values in
// the rendered chart.
func TestEveryValueCounts(t *testing.T) {
	all := values(t, "testdata/all-values.yaml")
	missing(t, "", values(t, path("helm", "hookloop", "values.yaml")), all)
	text := chart(t, allValues)
	for _, leaf := range leaves(all) {
		if !strings.Contains(text, leaf) {
			t.Errorf("%q is set, but is not in the rendered chart", leaf)
		}
	}
}

// missing reports the parameters that a values file does not set.
func missing(t *testing.T, prefix string, defaults, set map[string]any) {
	t.Helper()
	for name, value := range defaults {
		given, ok := set[name]
		if !ok {
			t.Errorf("testdata/all-values.yaml does not set %s%s", prefix, name)
			continue
		}
		if nested, ok := value.(map[string]any); ok && len(nested) > 0 {
			inner, _ := given.(map[string]any)
			missing(t, prefix+name+".", nested, inner)
		}
	}
}

// leaves returns the scalars of a value.
func leaves(value any) []string {
	var out []string
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			out = append(out, leaves(v)...)
		}
	case []any:
		for _, v := range value {
			out = append(out, leaves(v)...)
		}
	default:
		out = append(out, fmt.Sprint(value))
	}
	return out
}

// TestChartChecksValues expects an error that names the field.
func TestChartChecksValues(t *testing.T) {
	for _, test := range []struct{ name, set, part string }{
		{"replicas in words", "replicas=two", "/replicas"},
		{"less than no replica", "replicas=-1", "/replicas"},
		{"arguments in one string", "commandArgs=--workers=5", "/commandArgs"},
		{"an unknown pull policy", "image.pullPolicy=Sometimes", "/image/pullPolicy"},
		{"a Service without ports", "service.enabled=true", "/service/ports"},
		{"a gateway without a certificate", "gateway.enabled=true", "/gateway/tlsSecret"},
		{"a misspelt parameter", "replica=2", "replica"},
		{"a misspelt field", "gateway.tlsSecrets=a", "tlsSecrets"},
		{"a rule without verbs", "clusterRole.rules[0].resources={pods}", "/clusterRole/rules/0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := helm(t, "template", path("helm", "hookloop"), "--set="+test.set)
			if err == nil || !strings.Contains(err.Error(), test.part) {
				t.Errorf("got %v, want an error with %s", err, test.part)
			}
		})
	}
}

// TestArguments checks the arguments and ports for some values.
func TestArguments(t *testing.T) {
	usual := map[string]int32{"metrics": 9999, "health": 8081}
	for _, test := range []struct {
		name     string
		replicas int
		given    string
		args     []string
		ports    map[string]int32
	}{
		{"one replica needs no election", 1, `["--workers=9"]`, []string{"serve", "--workers=9"}, usual},
		{"several elect", 2, `[]`, []string{"serve", "--leader-election"}, usual},
		{
			"an election's other flags do not enable it", 2, `["--leader-election-id=a"]`,
			[]string{"serve", "--leader-election-id=a", "--leader-election"}, usual,
		},
		{"whoever decides decides", 2, `["--leader-election=false"]`, []string{"serve", "--leader-election=false"}, usual},
		{
			"ports follow the flags", 1, `["--health-probe-bind-address=:1234", "--metrics-address", "0"]`,
			[]string{"serve", "--health-probe-bind-address=:1234", "--metrics-address", "0"}, map[string]int32{"health": 1234},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := &appsv1.StatefulSet{}
			text := chart(t, fmt.Sprint("--set=replicas=", test.replicas), "--set-json=commandArgs="+test.given)
			into(t, workload(t, objects(t, text)).Object, set)
			container := set.Spec.Template.Spec.Containers[0]
			if diff := cmp.Diff(test.args, container.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			ports := map[string]int32{}
			for _, p := range container.Ports {
				ports[p.Name] = p.ContainerPort
			}
			if diff := cmp.Diff(test.ports, ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGatewayOfTheChart follows the Secrets into the Pod, and checks its port.
func TestGatewayOfTheChart(t *testing.T) {
	text := chart(t, "--set=gateway.enabled=true", "--set=gateway.tlsSecret=certificate",
		"--set=gateway.clientCASecret=clients")
	all := objects(t, text)
	set := &appsv1.StatefulSet{}
	service := &corev1.Service{}
	into(t, workload(t, all).Object, set)
	pod := set.Spec.Template.Spec
	files := map[string]string{}
	for _, v := range pod.Volumes {
		for _, m := range pod.Containers[0].VolumeMounts {
			if m.Name == v.Name {
				files[m.MountPath] = v.Secret.SecretName
			}
		}
	}
	if diff := cmp.Diff(
		map[string]string{"/etc/hookloop/gateway": "certificate", "/etc/hookloop/clients": "clients"},
		files,
	); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for _, argument := range []string{
		"--gateway-address=:9444", "--gateway-tls-cert=/etc/hookloop/gateway/tls.crt",
		"--gateway-tls-key=/etc/hookloop/gateway/tls.key", "--gateway-client-ca=/etc/hookloop/clients/ca.crt",
	} {
		if !slices.Contains(pod.Containers[0].Args, argument) {
			t.Errorf("arguments %q lack %s", pod.Containers[0].Args, argument)
		}
	}
	into(t, find(t, all, "Service", set.Name+"-gateway").Object, service)
	if port := service.Spec.Ports[0]; port.Port != 9444 || port.TargetPort.StrVal != "gateway" {
		t.Errorf("the Service's port is %v", port)
	}
}

// TestCRDsAreTheGeneratedOnes compares the CRDs of the chart and the base with manifests/crds.
func TestCRDsAreTheGeneratedOnes(t *testing.T) {
	want := objects(t, kustomize(t, "crds"))
	if len(want) != 4 {
		t.Fatalf("manifests/crds has %d CRDs, want 4", len(want))
	}
	for name, text := range map[string]string{"chart": chart(t), "production": kustomize(t, "production")} {
		all := objects(t, text)
		for _, crd := range want {
			got := find(t, all, "CustomResourceDefinition", crd.GetName())
			if diff := cmp.Diff(crd.Object["spec"], got.Object["spec"]); diff != "" {
				t.Errorf("%s: CRD %s (-generated +got):\n%s", name, crd.GetName(), diff)
			}
		}
	}
}

// TestOneVersion compares the versions in chart, base and docs.
func TestOneVersion(t *testing.T) {
	tag := regexp.MustCompile(`hookloop/hookloop:(v[0-9.]+)`)
	images := map[string]bool{}
	for _, text := range []string{kustomize(t, "production"), chart(t)} {
		found := tag.FindStringSubmatch(text)
		if found == nil {
			t.Fatal("no image with a version")
		}
		images[found[1]] = true
	}
	data, err := os.ReadFile(path("..", "docs", "guides", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range tag.FindAllStringSubmatch(string(data), -1) {
		images[found[1]] = true
	}
	if len(images) != 1 {
		t.Errorf("versions of the image: %v, want one", images)
	}
}

// TestChartIsInstalled installs and upgrades the chart on the cluster without warnings.
func TestChartIsInstalled(t *testing.T) {
	folder := path("helm", "hookloop")
	if _, err := helm(t, "lint", "--strict", folder); err != nil {
		t.Error(err)
	}
	args := []string{
		"upgrade",
		"--install",
		"installed",
		folder,
		"--namespace=chart-installed",
		"--create-namespace",
		"--skip-crds",
	}
	for _, flags := range [][]string{nil, {
		allValues, "--set=namespaceOverride=chart-installed", "--set=networkPolicy.hookNamespaces={chart-installed}",
	}} {
		if _, err := helm(t, append(args, flags...)...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := helm(t, "uninstall", "installed", "--namespace=chart-installed"); err != nil {
		t.Error(err)
	}
}
