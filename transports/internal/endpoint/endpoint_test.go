package endpoint

import (
	"strings"
	"testing"
	"time"
)

func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": DefaultTimeout, "0s": DefaultTimeout, "-1s": DefaultTimeout, "1m30s": 90 * time.Second,
	} {
		if got, err := Timeout(text); got != want || err != nil {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := Timeout("10"); err == nil || !strings.Contains(err.Error(), `"10" is no duration`) {
		t.Errorf("a number without a unit: got %v", err)
	}
}

func TestGuard(t *testing.T) {
	for address, refused := range map[string]bool{
		"10.0.0.1:80":             false,
		"127.0.0.1:80":            false,
		"[::1]:80":                false,
		"[fd00::1]:80":            false,
		"169.254.169.254:80":      true,
		"169.254.1.1:80":          true,
		"[::ffff:169.254.0.1]:80": true,
		"[fe80::1%lo]:80":         true,
		"[fd00:ec2::254]:80":      true,
		"100.100.100.200:80":      true,
		"168.63.129.16:80":        true,
		"192.0.0.192:80":          true,
		"[fd00:ec2::23]:80":       true,
		"[fd20:ce::254]:80":       true,
		"[fd00:c1::a9fe:a9fe]:80": true,
		"[fd00:42::42]:80":        true,
		"[fd00:a9fe:a9fe::1]:80":  true,
		// The same through a translator or a tunnel.
		"[::ffff:168.63.129.16]:80":           true,
		"[::169.254.169.254]:80":              true,
		"[::ffff:0:169.254.169.254]:80":       true,
		"[64:ff9b::169.254.169.254]:80":       true,
		"[64:ff9b::100.100.100.200]:80":       true,
		"[64:ff9b:1:a9fe:a9:fe00::]:80":       true,
		"[64:ff9b:1::169.254.169.254]:80":     true,
		"[2002:a9fe:a9fe::1]:80":              true,
		"[2001:0:1:2:3:4:5601:5601]:80":       true,
		"[fd00::5efe:169.254.169.254]:80":     true,
		"[fd00::200:5efe:169.254.169.254]:80": true,
		"[64:ff9b::10.0.0.1]:80":              false,
		"[2002:a00:1::1]:80":                  false,
		"[2001:db8::1]:80":                    false,
		"not an address, so it is!":           true,
	} {
		if err := Guard("tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: got %v, want refused %t", address, err, refused)
		}
	}
}
