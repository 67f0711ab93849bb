package server

import (
	"fmt"

	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/recording"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Recording configures the flight recorder, which keeps questions and answers of hooks as files.
type Recording struct {
	// Dir is the folder; empty records nothing.
	Dir string
	// PerParent is the number of questions that are kept for each parent, or input of a map
	// controller.
	PerParent int
	// MaxBytes bounds the files of all parents, as a quantity ("256Mi").
	MaxBytes string
}

func defaultRecording() Recording {
	return Recording{PerParent: recording.DefaultPerParent, MaxBytes: fmt.Sprintf("%dMi", recording.DefaultMaxBytes>>20)}
}

// rules are the checks of the values.
func (r *Recording) rules() []rule {
	size, err := resource.ParseQuantity(r.MaxBytes)
	return []rule{
		{r.Dir == "" || r.PerParent > 0, "record-per-parent", r.PerParent, "a number above 0"},
		{r.Dir == "" || err == nil && size.Value() > 0, "record-max-bytes", r.MaxBytes, "a quantity such as 256Mi"},
	}
}

// openRecorder opens the folder of the recordings, if there is one. The error is a *FlagError.
func (p *process) openRecorder() error {
	if p.Recording.Dir == "" {
		return nil
	}
	size, err := resource.ParseQuantity(p.Recording.MaxBytes)
	if err != nil {
		return err
	}
	p.recorder, err = recording.Open(recording.Config{
		Dir: p.Recording.Dir, PerParent: p.Recording.PerParent, MaxBytes: size.Value(), Engine: p.Version,
		Memory: p.budget.Share(budget.Recordings), Meter: newRecordingMetrics(p.metrics),
	})
	if err != nil {
		return &FlagError{"record-dir", p.Recording.Dir, "a folder that can be written: " + err.Error()}
	}
	return nil
}

// recordingMetrics count recordings. They exist only while recording is on.
type recordingMetrics struct {
	recorded *prometheus.CounterVec
	kept     prometheus.Gauge
}

func newRecordingMetrics(registry prometheus.Registerer) *recordingMetrics {
	auto := promauto.With(registry)
	m := &recordingMetrics{
		recorded: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hookloop_recordings_total",
			Help: "Questions of hooks by the result of their recording: written, dropped without room, or failed.",
		}, []string{"result"}),
		kept: auto.NewGauge(prometheus.GaugeOpts{
			Name: "hookloop_recordings_bytes", Help: "Size of the recordings on disk in bytes.",
		}),
	}
	for _, result := range []string{"written", "dropped", "failed"} {
		m.recorded.WithLabelValues(result)
	}
	return m
}

// Recorded implements recording.Meter.
func (m *recordingMetrics) Recorded(result string) { m.recorded.WithLabelValues(result).Inc() }

// Kept implements recording.Meter.
func (m *recordingMetrics) Kept(bytes int64) { m.kept.Set(float64(bytes)) }
