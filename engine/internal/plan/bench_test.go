package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
)

const deployments = `children: [{apiVersion: apps/v1, kind: Deployment, resource: deployments, method: InPlace}]`

// deployment returns a desired child of ordinary size.
func deployment(name string, replicas int) string {
	return fmt.Sprintf(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"labels":{"app":"web"}},"spec":{"replicas":%d,`+
			`"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[`+
			`{"name":"server","image":"registry.example.com/server:1.4.2","args":["--listen=:8080","--verbose"],`+
			`"ports":[{"containerPort":8080}],`+
			`"env":[{"name":"MODE","value":"production"},{"name":"REGION","value":"eu"}],"volumeMounts":[{"name":"config",`+
			`"mountPath":"/etc/server"}],`+
			`"resources":{"requests":{"cpu":"100m","memory":"64Mi"}}},`+
			`{"name":"proxy","image":"registry.example.com/proxy:2.0.0","ports":[{"containerPort":15001}]}],`+
			`"volumes":[{"name":"config","configMap":{"name":"web"}}]}}}}`,
		name,
		replicas,
	)
}

// fleet returns a converged cluster of n Deployments, an answer with the same state, and one with
// another state.
func fleet(b *testing.B, n int) (in plan.Input, same, other []json.RawMessage) {
	w := newCluster(b, deployments)
	var items []string
	for i := range n {
		items = append(items, deployment(fmt.Sprint("web-", i), 1))
		same = append(same, json.RawMessage(items[i]))
		other = append(other, json.RawMessage(deployment(fmt.Sprint("web-", i), 2)))
	}
	w.converge(items...)
	return w.input(), same, other
}

// run validates and plans, and fails unless the plan has the given number of actions.
func run(b *testing.B, in plan.Input, items []json.RawMessage, actions int) {
	b.ReportAllocs()
	answer := &hook.Answer{Children: items}
	for b.Loop() {
		children, err := plan.Children(in, answer)
		if err != nil {
			b.Fatal(err)
		}
		result, err := plan.Make(in, &plan.Desired{Children: children})
		if err != nil || len(result.Actions) != actions {
			b.Fatal(len(result.Actions), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(items)), "ns/child")
}

// BenchmarkPlanNoop is the steady state: the answer is checked, and desires the converged state.
func BenchmarkPlanNoop(b *testing.B) {
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in, same, _ := fleet(b, n)
			run(b, in, same, 0)
		})
	}
}

// BenchmarkPlanForgotten is the first sync after a start: nothing has changed, and nothing is
// remembered.
func BenchmarkPlanForgotten(b *testing.B) {
	in, same, _ := fleet(b, 3)
	in.Converged = nil
	run(b, in, same, 0)
}

// BenchmarkPlanUpdate changes one value of each child.
func BenchmarkPlanUpdate(b *testing.B) {
	in, _, other := fleet(b, 3)
	run(b, in, other, len(other))
}

// BenchmarkMake plans converged children without the validation of the answer.
func BenchmarkMake(b *testing.B) {
	in, same, _ := fleet(b, 1000)
	children, err := plan.Children(in, &hook.Answer{Children: same})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plan.Make(in, &plan.Desired{Children: children}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/child")
}
