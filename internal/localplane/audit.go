package localplane

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Write is one mutating request that the API server answered, from its audit log.
type Write struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb                         string
	Group, Resource, Subresource string
	Namespace, Name              string
	User, UserAgent              string
	Code                         int32
	// DryRun reports that the request was a dry run.
	DryRun  bool
	Time    time.Time
	AuditID string
}

// String is one line: patch helloworlds.example.com/status hello/your-name 200 by
// system:serviceaccount:… .
func (w Write) String() string {
	resource := w.Resource
	if w.Group != "" {
		resource += "." + w.Group
	}
	if w.Subresource != "" {
		resource += "/" + w.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d by %s (%s)", w.Verb, resource, w.Namespace, w.Name, w.Code, w.User, w.UserAgent)
}

// auditEvent holds the fields of audit.k8s.io/v1 Event that are used here.
type auditEvent struct {
	AuditID   string `json:"auditID"`
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource, Subresource, Namespace, Name string
		APIGroup                               string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int32 `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

// Mark is a point of the audit log.
type Mark struct {
	// place is the end of the last complete line.
	place int64
	// taken is the time of the mark in microseconds, the precision of the log's times.
	taken time.Time
}

// Mark returns the current end of the audit log.
func (c *Cluster) Mark() (Mark, error) {
	mark := Mark{taken: time.Now().Truncate(time.Microsecond)}
	file, err := os.Open(c.path("audit.log"))
	if os.IsNotExist(err) {
		return mark, nil
	}
	if err != nil {
		return mark, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	mark.place, err = lastLine(file)
	return mark, err
}

// lastLine returns the end of the last complete line.
func lastLine(file *os.File) (int64, error) {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	tail := make([]byte, min(end, longestLine))
	if _, err := file.ReadAt(tail, end-int64(len(tail))); err != nil {
		return 0, err
	}
	return end - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')) + 1, nil
}

// longestLine is longer than any event at level Metadata, in bytes.
const longestLine = 256 << 10

// Writes returns all writes since a mark, with dry runs. The API server logs a request before it
// responds, so that the log has each request that a client has a response to. Other clients may see
// the object first: Writes leaves out requests that the API server received before the mark,
// although their lines may come after it.
func (c *Cluster) Writes(since Mark) ([]Write, error) {
	file, err := os.Open(c.path("audit.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	return c.audit.since(file, since)
}

// auditLog keeps the decoded lines of the audit log, because callers that wait for a write read the
// log many times a second. It is safe for concurrent use.
type auditLog struct {
	mu sync.Mutex // guards the fields below
	// lines are those of writes between the positions begin and end, in order.
	begin, end int64
	lines      []auditLine
}

// auditLine is the line of a write.
type auditLine struct {
	place    int64 // its position
	received time.Time
	write    Write
}

// since reads the lines that are new, and returns the writes since a mark.
func (a *auditLog) since(file *os.File, mark Mark) ([]Write, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end == 0 || mark.place < a.begin {
		a.begin = mark.place
		a.end = mark.place
		a.lines = nil
	}
	if err := a.read(file); err != nil {
		return nil, err
	}
	first, _ := slices.BinarySearchFunc(a.lines, mark.place, func(l auditLine, place int64) int {
		return cmp.Compare(l.place, place)
	})
	var writes []Write
	for _, l := range a.lines[first:] {
		if !l.received.Before(mark.taken) {
			writes = append(writes, l.write)
		}
	}
	return writes, nil
}

// read reads the complete lines after the last one that was read.
func (a *auditLog) read(file *os.File) error {
	if _, err := file.Seek(a.end, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { // a line without its end is still being written
			return nil
		}
		if err != nil {
			return err
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		if e.ObjectRef != nil {
			a.lines = append(a.lines, auditLine{place: a.end, received: e.RequestReceivedTimestamp, write: e.write()})
		}
		a.end += int64(len(line))
	}
}

func (e auditEvent) write() Write {
	return Write{
		Verb:        e.Verb,
		Group:       e.ObjectRef.APIGroup,
		Resource:    e.ObjectRef.Resource,
		Subresource: e.ObjectRef.Subresource,
		Namespace:   e.ObjectRef.Namespace,
		Name:        e.ObjectRef.Name,
		User:        e.User.Username,
		UserAgent:   e.UserAgent,
		Code:        e.ResponseStatus.Code,
		DryRun:      strings.Contains(e.URI, "dryRun=All"),
		Time:        e.StageTimestamp,
		AuditID:     e.AuditID,
	}
}
