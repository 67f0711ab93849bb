package cache

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// readFrames reads all frames with buffers of a size. It returns the error after the last one.
func readFrames(r io.Reader, size int) (frames []string, err error) {
	var frame strings.Builder
	buffer := make([]byte, size)
	for {
		n, err := r.Read(buffer)
		frame.Write(buffer[:n])
		switch {
		case errors.Is(err, io.ErrShortBuffer):
		case err != nil:
			return frames, err
		default:
			frames = append(frames, frame.String())
			frame.Reset()
		}
	}
}

// TestFrames cuts streams in the same way as API machinery's framer, however the bytes arrive and
// however small the buffer is.
func TestFrames(t *testing.T) {
	for name, stream := range map[string]string{
		"nothing":               "",
		"one object a line":     `{"a":1}` + "\n" + `{"b":{"c":[{},{}]}}` + "\n",
		"no lines":              `{"a":1}{"b":2}`,
		"spaces":                "\n\r\t {\"a\" : 1 }\n \n{} \n",
		"braces in text":        `{"a":"}{","}":"\""}` + "\n" + `{"b":"\\"}` + "\n" + `{"c":"\\\"}"}`,
		"an object that breaks": `{"a":1}` + "\n" + `{"b":`,
		"text that breaks":      `{"a":"}`,
		"larger than buffers":   `{"a":"` + strings.Repeat("x", 10_000) + `"}` + "\n" + `{"b":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			want, wantErr := readFrames(jsonserializer.Framer.NewFrameReader(io.NopCloser(strings.NewReader(stream))), 64)
			for _, size := range []int{1, 7, 64, 20_000} {
				for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
					got, err := readFrames(framer{}.NewFrameReader(io.NopCloser(r)), size)
					if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, wantErr) {
						t.Fatalf("buffers of %d: %v, want %v; frames (-want +got):\n%s", size, err, wantErr, diff)
					}
				}
			}
		})
	}
}

// TestFramesRefuse has a body that is no JSON object.
func TestFramesRefuse(t *testing.T) {
	body := "{}\n<html><body>a proxy's page"
	frames, err := readFrames(framer{}.NewFrameReader(io.NopCloser(strings.NewReader(body))), 64)
	const want = `watch: got "<html><body>a pr", expected a JSON object`
	if len(frames) != 1 || err == nil || err.Error() != want {
		t.Errorf("%q, %v; want one frame and %s", frames, err, want)
	}
}

// TestDecodeEvent reads the frames of an API server and others that mean the same.
func TestDecodeEvent(t *testing.T) {
	const o = `{"kind":"Page","text":"\",\"object\":}"}`
	for _, frame := range []string{
		`{"type":"ADDED","object":` + o + `}`,
		`{"type":"ADDED","object":` + o + `,"more":1}`,
		`{"object":` + o + `,"type":"ADDED"}`,
		`{"type":"ADDED","more":"","object":` + o + `}`,
		`{ "type": "ADDED", "object": ` + o + ` }`,
	} {
		var event metav1.WatchEvent
		if err := decodeEvent([]byte(frame), &event); err != nil || event.Type != "ADDED" || string(event.Object.Raw) != o {
			t.Errorf("%s: %q with %s, %v", frame, event.Type, event.Object.Raw, err)
		}
	}
	for _, frame := range []string{`{"type":"ADDED","object":{}`, `{"type":1}`, `[]`, `{"type":"ADDED","object":}`} {
		if err := decodeEvent([]byte(frame), &metav1.WatchEvent{}); err == nil {
			t.Errorf("%s: no error", frame)
		}
	}
}

// TestDecodeEventAllocates has an event cost no copy of its object.
func TestDecodeEventAllocates(t *testing.T) {
	frame := []byte(`{"type":"MODIFIED","object":{"kind":"Page","text":"` + strings.Repeat("x", 10_000) + `"}}`)
	var event metav1.WatchEvent
	allocs := testing.AllocsPerRun(100, func() {
		if err := decodeEvent(frame, &event); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 1 {
		t.Errorf("%v allocations, want that of the type", allocs)
	}
}
