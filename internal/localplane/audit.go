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

// Write describes one request that writes, as the API server's audit log shows it.
type Write struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb                         string
	Group, Resource, Subresource string
	Namespace, Name              string
	User, UserAgent              string
	Code                         int32
	// DryRun is true for a dry run.
	DryRun  bool
	Time    time.Time
	AuditID string
}

// String returns one line: patch helloworlds.example.com/status hello/your-name 200 by
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

// auditEvent holds the fields of an audit.k8s.io/v1 Event that we read.
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

// Mark remembers a point in the audit log, to ask later for the writes since then.
type Mark struct {
	// place is where the last complete line ends.
	place int64
	// taken is when the mark was made, in microseconds as the log's times.
	taken time.Time
}

// Mark marks the current end of the audit log.
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

// lastLine returns where the last complete line ends.
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

// longestLine is more bytes than any event at level Metadata has.
const longestLine = 256 << 10

// Writes returns the writes since a mark, including dry runs. The API server logs a request before
// it answers, so each request whose answer a client has seen is in the log. Other clients may see
// the object first: Writes leaves out requests that arrived before the mark, although they may be
// logged after it.
func (c *Cluster) Writes(since Mark) ([]Write, error) {
	file, err := os.Open(c.path("audit.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	return c.audit.since(file, since)
}

// auditLog keeps the decoded lines of the audit log, because a caller that waits for a write reads
// the log many times a second. It is safe for concurrent use.
type auditLog struct {
	mu sync.Mutex // guards the fields below
	// lines holds the writes that are logged between the positions begin and end, in order.
	begin, end int64
	lines      []auditLine
}

// auditLine holds one logged write.
type auditLine struct {
	place    int64 // its position
	received time.Time
	write    Write
}

// since reads what is new in the log, and returns the writes since a mark.
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

// read reads the complete lines that it has not read yet.
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
