package natsconn

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mockbench/transport/embeddednats"
)

const patience = 20 * time.Second

// variables is an environment.
type variables map[string]string

func (v variables) get(name string) string { return v[name] }

func settings(t *testing.T, v variables) Settings {
	t.Helper()
	s, err := FromEnvironment(v.get)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func connect(t *testing.T, v variables, log *slog.Logger) *nats.Conn {
	t.Helper()
	c, err := Connect(t.Context(), settings(t, v), "test", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve runs a server with accounts or TLS.
func serve(t *testing.T, o server.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

func TestAuthentication(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := pair.Seed()
	public, _ := pair.PublicKey()
	accounts := func(user, password string) server.Options {
		return server.Options{Users: []*server.User{{Username: user, Password: password}}}
	}
	for name, c := range map[string]struct {
		server server.Options
		env    variables
	}{
		"default user":         {accounts("user", "user"), variables{}},
		"name and password":    {accounts("ada", "secret"), variables{"NATS_AUTH_USERNAME": "ada", "NATS_AUTH_PASSWORD": "secret", "NATS_AUTH_TOKEN": "unused"}},
		"token":                {server.Options{Authorization: "letmein"}, variables{"NATS_AUTH_USERNAME": "ada", "NATS_AUTH_TOKEN": "letmein", "NATS_AUTH_NKEY": "unused"}},
		"key":                  {server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}, variables{"NATS_AUTH_NKEY": string(seed)}},
		"password in the URL":  {accounts("ada", "secret"), variables{"NATS_SERVER": "nats://ada:secret@HOST"}},
		"nothing is necessary": {server.Options{}, variables{}},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, c.server)
			if given := c.env["NATS_SERVER"]; given != "" {
				address = strings.Replace(given, "HOST", strings.TrimPrefix(address, "nats://"), 1)
			}
			c.env["NATS_SERVER"] = address
			if conn := connect(t, c.env, nil); !conn.IsConnected() {
				t.Error("not connected")
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		begin := time.Now()
		_, err := Connect(t.Context(), settings(t, variables{"NATS_SERVER": serve(t, accounts("ada", "secret"))}), "test", nil)
		if !errors.Is(err, nats.ErrAuthorization) || !strings.Contains(err.Error(), "NATS_AUTH_") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("it took %v to give up", took)
		}
	})
}

func TestWrongSettings(t *testing.T) {
	for name, c := range map[string]struct {
		env     variables
		mention string
	}{
		"server":        {variables{"NATS_SERVER": "nats://"}, "NATS_SERVER"},
		"timeout":       {variables{"NATS_STARTUP_CONNECT_TIMEOUT_SECONDS": "soon"}, "NATS_STARTUP_CONNECT_TIMEOUT_SECONDS"},
		"half a login":  {variables{"NATS_AUTH_USERNAME": "ada"}, "NATS_AUTH_PASSWORD"},
		"seed":          {variables{"NATS_AUTH_NKEY": "not a seed"}, "NATS_AUTH_NKEY"},
		"half a client": {variables{"NATS_TLS_CLIENT_KEY_PATH": "key.pem"}, "NATS_TLS_CLIENT_CERT_PATH"},
		"no authority":  {variables{"NATS_SERVER": "tls://a", "NATS_TLS_CA_CERT_PATH": "none.pem"}, "NATS_TLS_CA_CERT_PATH"},
		"no client":     {variables{"NATS_SERVER": "tls://a", "NATS_TLS_CLIENT_CERT_PATH": "none.pem", "NATS_TLS_CLIENT_KEY_PATH": "none.key"}, "NATS_TLS_CLIENT_CERT_PATH"},
		"TLS unasked":   {variables{"NATS_SERVER": "tls://a,nats://b", "NATS_TLS_INSECURE": "yes"}, "must begin with tls:// because NATS_TLS_INSECURE is set"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := FromEnvironment(c.env.get); err == nil || !strings.Contains(err.Error(), c.mention) {
				t.Errorf("got %v, want an error about %s", err, c.mention)
			}
		})
	}
	missing := variables{"NATS_AUTH_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none"), "NATS_SERVER": serve(t, server.Options{})}
	_, err := Connect(t.Context(), settings(t, missing), "test", nil)
	if err == nil || !strings.Contains(err.Error(), "NATS_AUTH_CREDENTIALS_FILE") {
		t.Errorf("a credentials file that does not exist gives %v", err)
	}
}

// freeAddress returns an address where nothing listens, and its port.
func freeAddress(t *testing.T) (string, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "nats://" + l.Addr().String(), l.Addr().(*net.TCPAddr).Port
}

func TestNoServer(t *testing.T) {
	address, _ := freeAddress(t)
	withPassword := strings.Replace(address, "nats://", "nats://ada:secret@", 1)
	_, err := Connect(t.Context(), settings(t, variables{"NATS_SERVER": withPassword, "NATS_STARTUP_CONNECT_TIMEOUT_SECONDS": "0.3"}), "test", nil)
	if err == nil {
		t.Fatal("connected to nothing")
	}
	text := err.Error()
	for _, word := range []string{"NATS_SERVER", strings.TrimPrefix(address, "nats://"), "300ms", "refused", "NATS_STARTUP_CONNECT_TIMEOUT_SECONDS"} {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not mention %s", text, word)
		}
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "\n") {
		t.Errorf("error %q", text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, settings(t, variables{"NATS_SERVER": address}), "test", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled start ended with %v", err)
	}
}

func TestWaitsForTheServer(t *testing.T) {
	address, port := freeAddress(t)
	up := make(chan error, 1)
	go func() {
		time.Sleep(200 * time.Millisecond)
		s, err := embeddednats.Start(embeddednats.Options{Port: port})
		if err == nil {
			t.Cleanup(s.Close)
		}
		up <- err
	}()
	var lines bytes.Buffer
	connect(t, variables{"NATS_SERVER": address}, slog.New(slog.NewTextHandler(&lines, nil)))
	if err := <-up; err != nil {
		t.Fatal(err)
	}
	if text := lines.String(); strings.Count(text, "waiting for NATS") != 1 || !strings.Contains(text, "connected to NATS") {
		t.Errorf("logged:\n%s", text)
	}
}

func TestComesBackWithSubscriptions(t *testing.T) {
	first, err := embeddednats.Start(embeddednats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	c := connect(t, variables{"NATS_SERVER": first.URL()}, nil)
	subscription, err := c.SubscribeSync("a")
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(first.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(address.Port())
	first.Close()
	time.Sleep(300 * time.Millisecond)
	second, err := embeddednats.Start(embeddednats.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Close)
	for deadline := time.Now().Add(patience); !c.IsConnected(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection does not come back")
		}
	}
	if err := c.Publish("a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := subscription.NextMsg(patience); err != nil {
		t.Errorf("the subscription is lost: %v", err)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certificate := selfSigned(t, dir)
	address := serve(t, server.Options{TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}, TLSTimeout: 10})
	ca := filepath.Join(dir, "cert.pem")
	for name, env := range map[string]variables{
		"known authority":    {"NATS_TLS_CA_CERT_PATH": ca},
		"client certificate": {"NATS_TLS_CA_CERT_PATH": ca, "NATS_TLS_CLIENT_CERT_PATH": ca, "NATS_TLS_CLIENT_KEY_PATH": filepath.Join(dir, "key.pem")},
		"unchecked":          {"NATS_TLS_INSECURE": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			env["NATS_SERVER"] = strings.Replace(address, "nats://", "tls://", 1)
			if c := connect(t, env, nil); !c.TLSRequired() {
				t.Error("the connection is not encrypted")
			}
		})
	}
	t.Run("unknown authority", func(t *testing.T) {
		_, err := Connect(t.Context(), settings(t, variables{"NATS_SERVER": address}), "test", nil)
		var authority x509.UnknownAuthorityError
		if !errors.As(err, &authority) {
			t.Errorf("got %v", err)
		}
	})
}

// selfSigned makes a certificate that is its own authority and writes cert.pem and key.pem.
func selfSigned(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true,
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cert.pem", "CERTIFICATE", der)
	write("key.pem", "EC PRIVATE KEY", private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
