package actor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func shop(name string) objectID {
	return objectID{kind: "LogService.example.com", NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

func conditions(pairs ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, pair := range pairs {
		name, status, _ := strings.Cut(pair, "=")
		all = append(all, metav1.Condition{Type: name, Status: metav1.ConditionStatus(status)})
	}
	return all
}

const series = `hookloop_object_condition{condition="%s",kind="LogService.example.com",name="%s",namespace="shop"} %d
`

// TestConditionMetric follows the series of two objects until both are gone.
func TestConditionMetric(t *testing.T) {
	m := newConditionMetric(100)
	expect := func(want string) {
		t.Helper()
		head := "# HELP hookloop_object_condition Conditions of objects: 1 for True, 0 for any other status.\n" +
			"# TYPE hookloop_object_condition gauge\n"
		if want == "" {
			head = ""
		}
		if err := testutil.CollectAndCompare(m, strings.NewReader(head+want), "hookloop_object_condition"); err != nil {
			t.Error(err)
		}
	}
	m.set(shop("a"), conditions("Ready=True", "Synced=False"))
	m.set(shop("b"), conditions("Ready=Unknown"))
	expect(fmt.Sprintf(series, "Ready", "a", 1) + fmt.Sprintf(series, "Synced", "a", 0) +
		fmt.Sprintf(series, "Ready", "b", 0))
	m.set(shop("a"), conditions("Ready=False"))
	m.forget(shop("b"))
	expect(fmt.Sprintf(series, "Ready", "a", 0))
	m.forgetKind("LogService.example.com")
	expect("")
	if m.series != 0 {
		t.Errorf("series = %d without objects", m.series)
	}
}

// TestConditionMetricIsBounded has room for three series.
func TestConditionMetricIsBounded(t *testing.T) {
	m := newConditionMetric(3)
	m.set(shop("a"), conditions("Ready=True", "Synced=True"))
	m.set(shop("b"), conditions("Ready=True", "Synced=True"))
	if m.series != 2 || len(m.skipped) != 1 {
		t.Errorf("series = %d, skipped = %d, want 2 and 1", m.series, len(m.skipped))
	}
	m.forget(shop("a"))
	m.set(shop("b"), conditions("Ready=True", "Synced=True"))
	if m.series != 2 || len(m.skipped) != 0 {
		t.Errorf("series = %d, skipped = %d, want 2 and 0", m.series, len(m.skipped))
	}
}

func TestActionNamesAreBounded(t *testing.T) {
	m := newActionMetrics()
	for i := range maxActionNames + 10 {
		m.ran("log", fmt.Sprintf("Create%d", i), "success", time.Second)
		m.ran("log", "Create0", "success", time.Second)
	}
	if got := testutil.CollectAndCount(m.total); got != maxActionNames+1 {
		t.Errorf("series = %d, want %d", got, maxActionNames+1)
	}
	if got := testutil.ToFloat64(m.total.WithLabelValues("log", "Create0", "success")); got != maxActionNames+11 {
		t.Errorf("Create0 = %v, want %d", got, maxActionNames+11)
	}
}
