package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert = &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.pem, _, a.key = a.sign(a.cert, "test authority", nil)
	return a
}

// sign makes a certificate and its key, as PEM texts; a nil signer signs itself.
func (a *authority) sign(c *x509.Certificate, name string, signer *ecdsa.PrivateKey) (cert, key string, private *ecdsa.PrivateKey) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if signer == nil {
		signer = private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &private.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", keyDER), private
}

// leaf makes a certificate for the machine, good for both sides of a connection.
func (a *authority) leaf(name string) (cert, key string) {
	c := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	cert, key, _ = a.sign(c, name, a.key)
	return cert, key
}

// file writes a text into a file of the test.
func (a *authority) file(name, text string) string {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// TestEtcdWithCertificates has a server that takes only clients with a certificate. Frontend and worker get the same
// variables.
func TestEtcdWithCertificates(t *testing.T) {
	e := newEtcd(t)
	e.url = strings.Replace(e.url, "http:", "https:", 1)
	a := newAuthority(t)
	cert, key := a.leaf("server")
	e.args = []string{"--client-cert-auth", "--trusted-ca-file", a.file("ca.pem", a.pem), "--cert-file", a.file("cert.pem", cert), "--key-file", a.file("key.pem", key)}
	e.boot()
	cert, key = a.leaf("client")
	e.env = append(e.env, "ETCD_ENDPOINTS="+e.url, "ETCD_AUTH_CA="+a.pem, "ETCD_AUTH_CLIENT_CERT="+cert, "ETCD_AUTH_CLIENT_KEY="+key)
	e.frontend()
	e.ours()
	e.eventually(60*time.Second, "the model is listed", e.listed)
	e.mustChat("in private", 4)
	time.Sleep(leaseTTL + time.Second)
	e.mustChat("the lease is renewed", 4)

	other := newAuthority(t)
	cert, key = other.leaf("stranger")
	e.env = append(e.env, "ETCD_AUTH_CLIENT_CERT="+cert, "ETCD_AUTH_CLIENT_KEY="+key, "ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS=1")
	e.mustRefuse(e.ours(), "error: etcd did not answer at "+e.url)
}

// TestEtcdWithUsers has a server that wants a name and a password, and forgets who is there every other second.
func TestEtcdWithUsers(t *testing.T) {
	e := newEtcd(t)
	e.args = []string{"--auth-token-ttl", "2"}
	e.boot()
	e.connect()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := e.client.UserAdd(ctx, "root", "secret")
	if err == nil {
		_, err = e.client.UserGrantRole(ctx, "root", "root")
	}
	if err == nil {
		_, err = e.client.AuthEnable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.env = append(e.env, "ETCD_AUTH_USERNAME=root", "ETCD_AUTH_PASSWORD=secret")
	e.frontend()
	p := e.ours()
	e.eventually(60*time.Second, "the model is listed", e.listed)
	time.Sleep(2*leaseTTL + time.Second)
	e.mustChat("who are you?", 4)
	if _, status := p.stop(20 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
	e.eventually(5*time.Second, "the model is unlisted", func() bool { return !e.listed() })

	e.env = append(e.env, "ETCD_AUTH_PASSWORD=wrong")
	e.mustRefuse(e.ours(), "error: etcd at "+e.url+" refuses us: ")
}

// mustRefuse expects a process to end by itself with an error.
func (e *etcdServer) mustRefuse(p *process, text string) {
	e.t.Helper()
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		e.t.Fatal("the process goes on")
	}
	if status := p.cmd.ProcessState.ExitCode(); status != 1 || !strings.Contains(p.log.String(), text) {
		e.t.Errorf("exit status %d, want 1 and %q, got\n%s", status, text, p.log.String())
	}
}
