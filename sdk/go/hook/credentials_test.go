package hook_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

func TestTLSFromFiles(t *testing.T) {
	files := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer files.Close()
	key, err := x509.MarshalPKCS8PrivateKey(files.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	o := hook.ServeOptions{
		TLSCert: write(t, "tls.crt", &pem.Block{Type: "CERTIFICATE", Bytes: files.Certificate().Raw}),
		TLSKey:  write(t, "tls.key", &pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
	plain, _ := start(t, o, hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		return &hook.SyncResponse{}, nil
	}})
	if _, err := compositev1.NewCompositeHookServiceClient(plain).Sync(t.Context(), request()); err == nil {
		t.Error("plain text: got an answer, want none")
	}
	roots := x509.NewCertPool()
	roots.AddCert(files.Certificate())
	secure, err := grpc.NewClient(plain.Target(),
		grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "example.com")))
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close() //nolint:errcheck // nothing is under way
	if _, err := compositev1.NewCompositeHookServiceClient(secure).Sync(t.Context(), request()); err != nil {
		t.Errorf("TLS: %v", err)
	}
}

func write(t *testing.T, name string, block *pem.Block) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
