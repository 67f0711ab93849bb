package scaffold

import (
	"os"
	"path/filepath"
)

// checkoutMark is a file by which we recognize a checkout of Hookloop.
const checkoutMark = "sdk/go/go.mod"

// FindSDK returns the checkout of Hookloop in which the program lies, or "". After "make build" it
// lies in one, and a new project can use the SDKs there.
func FindSDK(program string) string {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if isCheckout(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func isCheckout(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(checkoutMark)))
	return err == nil
}

// IsRelease returns true if the SDKs of this version are published.
func IsRelease(version string) bool { return releasePattern.MatchString(version) }
