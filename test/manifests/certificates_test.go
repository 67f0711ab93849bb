package manifests

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// issuer runs manifests/hooks/certificates.sh for the namespace of a kit.
type issuer struct {
	*kit.Kit
	t      *testing.T
	client kubernetes.Interface
}

func (i *issuer) run(environment ...string) {
	i.t.Helper()
	folder, err := i.Cluster.InstallKubectl()
	if err != nil {
		i.t.Fatal(err)
	}
	command := exec.CommandContext(i.t.Context(), path("hooks", "certificates.sh"), i.Namespace, "hello")
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Start(i.t).Kubeconfig(), "KUBECTL="+folder+"/kubectl")
	command.Env = append(command.Env, environment...)
	if out, err := command.CombinedOutput(); err != nil {
		i.t.Fatalf("%v: %s", err, out)
	}
}

func (i *issuer) secret(name string) map[string][]byte {
	i.t.Helper()
	s, err := i.client.CoreV1().Secrets(i.Namespace).Get(i.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	return s.Data
}

// accepts reports whether the holder of one Secret accepts the certificate of the other, for a name
// if one is given.
func (i *issuer) accepts(of, shown map[string][]byte, name string, usage x509.ExtKeyUsage) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(of["ca.crt"])
	pair, err := tls.X509KeyPair(shown[corev1.TLSCertKey], shown[corev1.TLSPrivateKeyKey])
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return err
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// both checks the two sides of a connection.
func (i *issuer) both(engine, hook map[string][]byte) {
	i.t.Helper()
	if err := i.accepts(engine, hook, "hello."+i.Namespace, x509.ExtKeyUsageServerAuth); err != nil {
		i.t.Errorf("the engine refuses the hook: %v", err)
	}
	if err := i.accepts(hook, engine, "", x509.ExtKeyUsageClientAuth); err != nil {
		i.t.Errorf("the hook refuses the engine: %v", err)
	}
}

// TestCertificates makes certificates, keeps valid ones, and replaces their authority while old and
// new ones are in use together.
func TestCertificates(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	k := kit.New(t)
	i := &issuer{k, t, kubernetes.NewForConfigOrDie(k.Cluster.Admin())}
	i.run()
	engine := i.secret("hookloop-client")
	hook := i.secret("hello-tls")
	i.both(engine, hook)
	leaf, _ := pem.Decode(engine[corev1.TLSCertKey])
	certificate, err := x509.ParseCertificate(leaf.Bytes)
	if err != nil || certificate.Subject.CommonName != "hookloop" || !slices.Contains(certificate.DNSNames, "hookloop") {
		t.Errorf("the engine's certificate is for %v (%v), expected hookloop", certificate.Subject, err)
	}
	i.run()
	if again := i.secret("hello-tls"); !bytes.Equal(again[corev1.TLSCertKey], hook[corev1.TLSCertKey]) {
		t.Error("a certificate that is valid was made anew")
	}
	i.run("ROTATE_CA=1")
	trustingEngine := i.secret("hookloop-client")
	trustingHook := i.secret("hello-tls")
	if !bytes.Equal(trustingHook[corev1.TLSCertKey], hook[corev1.TLSCertKey]) {
		t.Error("the hook shows a certificate of the new authority before all know that")
	}
	i.both(trustingEngine, hook)
	i.both(engine, trustingHook)
	i.run()
	newEngine := i.secret("hookloop-client")
	newHook := i.secret("hello-tls")
	if bytes.Equal(newHook[corev1.TLSCertKey], hook[corev1.TLSCertKey]) {
		t.Error("the hook's certificate is not of the new authority")
	}
	i.both(newEngine, trustingHook)
	i.both(trustingEngine, newHook)
	i.both(newEngine, newHook)
	role, err := i.client.RbacV1().RoleBindings(k.Namespace).Get(t.Context(), "hookloop-client", metav1.GetOptions{})
	if err != nil || len(role.Subjects) != 1 || role.Subjects[0].Name != "hookloop" ||
		role.Subjects[0].Namespace != system {
		t.Errorf("the engine may not read its certificate: %v, %v", role.Subjects, err)
	}
}
