package scaffold

import (
	"os"
	"path/filepath"
)

// checkoutMark is a file that only a checkout of Hookloop has.
const checkoutMark = "sdk/go/go.mod"

// FindSDK returns the checkout of Hookloop that a program is in, or "". A program that "make build"
// has built is in its checkout, and a new project can use the SDKs there.
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

// IsRelease reports whether the registries have the SDKs of a version of Hookloop.
func IsRelease(version string) bool { return releasePattern.MatchString(version) }
