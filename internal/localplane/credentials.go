package localplane

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority signs the cluster's certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	pem         []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(pkix.Name{CommonName: "hookloop-test-ca"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der)}, nil
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// issue signs a certificate for loopback that serves as a server's and as a client's. It returns
// certificate and key as PEM.
func (a *authority) issue(name string, groups ...string) (certificate, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := template(pkix.Name{CommonName: name, Organization: groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, signer.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalECPrivateKey(signer)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", private), nil
}

func template(subject pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // crypto/rand does not fail
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// makeCredentials writes the certificates, keys, kubeconfigs and the audit policy into the
// cluster's folder.
func (c *Cluster) makeCredentials(context.Context) (err error) {
	c.ca, err = newAuthority()
	if err != nil {
		return err
	}
	files := map[string][]byte{"ca.crt": c.ca.pem, "audit-policy.yaml": []byte(auditPolicy)}
	for file, subject := range map[string][]string{
		"etcd": {"etcd"}, "etcd-client": {"etcd-client"}, "apiserver": {"kube-apiserver"},
		"admin": {"admin", "system:masters"}, "controller-manager": {"system:kube-controller-manager"},
	} {
		files[file+".crt"], files[file+".key"], err = c.ca.issue(subject[0], subject[1:]...)
		if err != nil {
			return err
		}
	}
	files["sa.key"], files["sa.pub"], err = signingKey()
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(c.path(name), data, 0o600); err != nil {
			return err
		}
	}
	c.admin = c.config()
	c.admin.CertData = files["admin.crt"]
	c.admin.KeyData = files["admin.key"]
	manager := c.config()
	manager.CertData = files["controller-manager.crt"]
	manager.KeyData = files["controller-manager.key"]
	if err := WriteKubeconfig(manager, c.path("controller-manager.kubeconfig")); err != nil {
		return err
	}
	return WriteKubeconfig(c.admin, c.Kubeconfig())
}

func signingKey() (private, public []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), encode("PUBLIC KEY", der), nil
}

// config returns a client configuration without an identity.
func (c *Cluster) config() *rest.Config {
	return &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", c.ports.api), TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem},
		QPS: 1000, Burst: 2000,
	}
}

// WriteKubeconfig writes a client configuration as a kubeconfig file.
func WriteKubeconfig(config *rest.Config, file string) error {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["hookloop"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	kubeconfig.Contexts["hookloop"] = &clientcmdapi.Context{Cluster: "hookloop", AuthInfo: "user"}
	kubeconfig.CurrentContext = "hookloop"
	return clientcmd.WriteToFile(*kubeconfig, file)
}
