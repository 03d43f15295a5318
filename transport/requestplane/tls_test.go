package requestplane_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mockbench/transport/requestplane"
	"mockbench/transport/requestplane/planetest"
)

// authority makes certificates in a folder.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true}, nil)
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(name string, c *x509.Certificate, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	issuer, issuerKey := c, key
	if parent != nil {
		issuer, issuerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, issuerKey)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	a.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return parsed, key
}

// host issues a certificate for 127.0.0.1 that serves both ends.
func (a *authority) host(name string) {
	a.issue(name, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"frontend.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a)
}

func (a *authority) write(name string, data []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), data, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// environment returns variables whose values are files of the authority, except for those that start with "=".
func (a *authority) environment(set map[string]string) func(string) string {
	return func(name string) string {
		v := set[strings.TrimPrefix(name, "DYN_TCP_TLS_")]
		if text, ok := strings.CutPrefix(v, "="); ok || v == "" {
			return text
		}
		return a.path(v)
	}
}

func (a *authority) tls(set map[string]string) requestplane.TLS {
	a.t.Helper()
	t, warnings, err := requestplane.TLSFromEnvironment(a.environment(set))
	if err != nil || len(warnings) > 0 {
		a.t.Fatal(warnings, err)
	}
	return t
}

// tunnel listens and passes the bytes of each connection on to another one.
func tunnel(t *testing.T, l net.Listener, dial func() (net.Conn, error)) string {
	t.Helper()
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := dial()
			if err != nil {
				from.Close()
				continue
			}
			for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1])
					ends[0].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

func plainListener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// encryptedFrontend is a scripted frontend whose both ends are encrypted, and a connection from it to a worker.
func encryptedFrontend(t *testing.T, a *authority, worker string) (*planetest.Frontend, *planetest.Conn, string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.path("frontend.pem"), a.path("frontend.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	f := planetest.New(t)
	answers := tunnel(t, tls.NewListener(plainListener(t), &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert}), func() (net.Conn, error) { return net.Dial("tcp", f.Addr()) })
	requests := tunnel(t, plainListener(t), func() (net.Conn, error) {
		return tls.Dial("tcp", worker, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	})
	return f, planetest.Dial(t, requests), answers
}

// mutual are the variables of a worker whose both ends show and demand certificates.
var mutual = map[string]string{"CERT_PATH": "worker.pem", "KEY_PATH": "worker.key", "CLIENT_CA_CERT_PATH": "ca.pem",
	"CA_CERT_PATH": "ca.pem", "CLIENT_CERT_PATH": "worker.pem", "CLIENT_KEY_PATH": "worker.key"}

func TestEncryptedPlanes(t *testing.T) {
	for name, change := range map[string]map[string]string{
		"by address":    nil,
		"by name":       {"SERVER_NAME": "=frontend.test"},
		"without check": {"CA_CERT_PATH": "", "INSECURE": "=True"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.host("worker")
			a.host("frontend")
			set := map[string]string{}
			for _, m := range []map[string]string{mutual, change} {
				for k, v := range m {
					set[k] = v
				}
			}
			s := listen(t, requestplane.Options{TLS: a.tls(set)})
			handle(t, s, echo, serveEcho)
			f, c, answers := encryptedFrontend(t, a, s.Addr())
			for range 3 {
				id := f.ID()
				c.Send(echo.Path(), nil, bytes.ReplaceAll(f.Control(id, "msgpack"), []byte(f.Addr()), []byte(answers)), []byte("\xc3"))
				if ack := c.Ack(); ack != "" {
					t.Fatalf("acknowledged with %q", ack)
				}
				expectEcho(t, f.Answer(), id, "\xc3")
			}
		})
	}
}

// Whoever does not fit gets no further than the handshake, and disturbs nobody.
func TestEncryptedPlanesRefuse(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	a.host("worker")
	a.host("frontend")
	stranger.host("frontend")
	limited := map[string]string{"HANDSHAKE_TIMEOUT_SECS": "=1"}
	for k, v := range mutual {
		limited[k] = v
	}
	s := listen(t, requestplane.Options{TLS: a.tls(limited)})
	handle(t, s, echo, serveEcho)
	silent := planetest.Dial(t, s.Addr())
	plain := planetest.Dial(t, s.Addr())
	plain.Send(echo.Path(), nil, []byte("{}"), nil)
	if !plain.Closed() {
		t.Error("a connection without encryption stays open")
	}
	if !silent.Closed() {
		t.Error("a connection without a handshake stays open")
	}
	pair, err := tls.LoadX509KeyPair(stranger.path("frontend.pem"), stranger.path("frontend.key"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", s.Addr(), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}})
	if err == nil {
		_ = c.SetReadDeadline(time.Now().Add(planetest.Patience))
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of a strange authority: %v", err)
	}
	f, ok, answers := encryptedFrontend(t, a, s.Addr())
	id := f.ID()
	ok.Send(echo.Path(), nil, bytes.ReplaceAll(f.Control(id, "msgpack"), []byte(f.Addr()), []byte(answers)), []byte("\xc3"))
	expectEcho(t, f.Answer(), id, "\xc3")
}

// A renewed certificate is shown from then on; half a renewal changes nothing.
func TestRenewedCertificate(t *testing.T) {
	a := newAuthority(t)
	a.host("worker")
	conf := a.tls(map[string]string{"CERT_PATH": "worker.pem", "KEY_PATH": "worker.key", "INSECURE": "=1"}).Requests
	shown := func() string {
		c, err := conf.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(c.Certificate[0])
	}
	first := shown()
	a.write("worker.pem", []byte("half of it"))
	if shown() != first {
		t.Error("a broken file took the certificate away")
	}
	a.host("worker")
	if shown() == first {
		t.Error("the old certificate is still shown")
	}
}

func TestTLSFromEnvironment(t *testing.T) {
	a := newAuthority(t)
	a.host("worker")
	a.write("empty.pem", nil)
	for want, set := range map[string]map[string]string{
		"DYN_TCP_TLS_KEY_PATH: must be set because DYN_TCP_TLS_CERT_PATH is":               {"CERT_PATH": "worker.pem"},
		"DYN_TCP_TLS_CERT_PATH: must be set because DYN_TCP_TLS_KEY_PATH is":               {"KEY_PATH": "worker.key"},
		"DYN_TCP_TLS_CLIENT_KEY_PATH: must be set because DYN_TCP_TLS_CLIENT_CERT_PATH is": {"CLIENT_CERT_PATH": "worker.pem"},
		"DYN_TCP_TLS_CERT_PATH, DYN_TCP_TLS_KEY_PATH: open ":                               {"CERT_PATH": "absent", "KEY_PATH": "worker.key"},
		"DYN_TCP_TLS_CERT_PATH, DYN_TCP_TLS_KEY_PATH: tls: ":                               {"CERT_PATH": "worker.pem", "KEY_PATH": "ca.key"},
		"DYN_TCP_TLS_CLIENT_CA_CERT_PATH: needs DYN_TCP_TLS_CERT_PATH":                     {"CLIENT_CA_CERT_PATH": "ca.pem"},
		"DYN_TCP_TLS_CA_CERT_PATH: ":                                                       {"CA_CERT_PATH": "absent"},
		"empty.pem holds no certificate":                                                   {"CA_CERT_PATH": "empty.pem"},
		`DYN_TCP_TLS_HANDSHAKE_TIMEOUT_SECS: got "0", must be a number from 1 to 3600`:     {"HANDSHAKE_TIMEOUT_SECS": "=0"},
	} {
		if _, _, err := requestplane.TLSFromEnvironment(a.environment(set)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", set, err, want)
		}
	}
	half, warnings, err := requestplane.TLSFromEnvironment(a.environment(map[string]string{"CERT_PATH": "worker.pem", "KEY_PATH": "worker.key"}))
	if err != nil || half.Requests == nil || half.Answers != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "DYN_TCP_TLS_CA_CERT_PATH") {
		t.Errorf("got %+v, %q, %v", half, warnings, err)
	}
	off, warnings, err := requestplane.TLSFromEnvironment(a.environment(map[string]string{"SERVER_NAME": "=x", "INSECURE": "=0"}))
	if err != nil || off.Requests != nil || off.Answers != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "DYN_TCP_TLS_SERVER_NAME") {
		t.Errorf("got %+v, %q, %v", off, warnings, err)
	}
}
