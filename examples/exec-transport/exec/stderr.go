package exec

import (
	"bufio"
	"errors"
	"io"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
)

const (
	// maxMessage is how much of a line of standard error is logged.
	maxMessage = 1 << 10
	// messagesPerSecond and messageBurst limit how many lines are logged.
	messagesPerSecond = 10
	messageBurst      = 100
)

// stderrLog logs what a program writes to standard error.
type stderrLog struct {
	log     logr.Logger
	limiter *rate.Limiter
	dropped int
	// last is the last line that has text.
	last string
}

func newStderrLog(log logr.Logger) *stderrLog {
	return &stderrLog{log: log, limiter: rate.NewLimiter(messagesPerSecond, messageBurst)}
}

// copy reads until the end of the stream. It goes on reading when the limit is reached, because
// the program would wait otherwise.
func (l *stderrLog) copy(from io.Reader) {
	lines := bufio.NewReaderSize(from, maxMessage)
	for {
		line, err := lines.ReadSlice('\n')
		l.message(line)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = lines.ReadSlice('\n')
		}
		if err != nil {
			break
		}
	}
	l.reportDropped()
}

// message logs one line.
func (l *stderrLog) message(line []byte) {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	if len(line) == 0 {
		return
	}
	l.last = string(line)
	if !l.limiter.Allow() {
		l.dropped++
		return
	}
	l.reportDropped()
	l.log.Info("message of a program", "text", l.last)
}

// reportDropped logs how many lines were left out.
func (l *stderrLog) reportDropped() {
	if l.dropped > 0 {
		l.log.Info("messages of a program were left out, because there were too many", "lines", l.dropped)
		l.dropped = 0
	}
}
