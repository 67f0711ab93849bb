package hook

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tokenFile checks tokens against a file that lists one token on each line. It reads the file again
// when the file changes. While the file cannot be read, no token is accepted.
type tokenFile struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex  // guards the fields below
	seen fs.FileInfo // when the file was last read
	sums [][sha256.Size]byte
	err  error
}

// read reads the file if it has changed, and returns the error of the last attempt.
func (f *tokenFile) read() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reread()
}

// reread is called with the lock held.
func (f *tokenFile) reread() error {
	now, err := os.Stat(f.path)
	if err == nil && f.seen != nil && os.SameFile(now, f.seen) && now.ModTime().Equal(f.seen.ModTime()) &&
		now.Size() == f.seen.Size() {
		return f.err
	}
	var sums [][sha256.Size]byte
	if err == nil {
		sums, err = readTokens(f.path)
	}
	if err != nil && (f.err == nil || f.err.Error() != err.Error()) {
		f.log.Error("the tokens of callers cannot be read; every call is refused", "error", err)
	}
	f.seen = now
	f.sums = sums
	f.err = err
	return err
}

// readTokens returns a hash for each token in the file.
func readTokens(path string) ([][sha256.Size]byte, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return nil, err
	}
	var sums [][sha256.Size]byte
	for line := range strings.Lines(string(text)) {
		if token := strings.TrimSpace(line); token != "" {
			sums = append(sums, sha256.Sum256([]byte(token)))
		}
	}
	if sums == nil {
		return nil, fmt.Errorf("%s has no token; expected one in each line", path)
	}
	return sums, nil
}

// check returns an error if the file does not contain the token. It takes the same time for every
// token.
func (f *tokenFile) check(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reread(); err != nil {
		return status.Error(codes.Unavailable, "the hook cannot read its file of tokens")
	}
	sum := sha256.Sum256([]byte(token))
	good := 0
	for _, s := range f.sums {
		good |= subtle.ConstantTimeCompare(sum[:], s[:])
	}
	if good == 0 {
		return status.Error(codes.Unauthenticated, "the call's token is not one that this hook knows")
	}
	return nil
}
