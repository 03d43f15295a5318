package requestplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TLS says how the connections of the TCP planes are encrypted. The zero value is not at all.
type TLS struct {
	Requests *tls.Config // of the server that takes requests; nil: not encrypted
	Answers  *tls.Config // of connections to frontends; without a ServerName the address must be in the certificate
	Limit    time.Duration
}

// handshakeLimit is how long a handshake may take if nothing is said.
const handshakeLimit = 3 * time.Second

// Variables of TLS.
const (
	certVariable       = "DYN_TCP_TLS_CERT_PATH"
	keyVariable        = "DYN_TCP_TLS_KEY_PATH"
	clientCAVariable   = "DYN_TCP_TLS_CLIENT_CA_CERT_PATH"
	caVariable         = "DYN_TCP_TLS_CA_CERT_PATH"
	insecureVariable   = "DYN_TCP_TLS_INSECURE"
	clientCertVariable = "DYN_TCP_TLS_CLIENT_CERT_PATH"
	clientKeyVariable  = "DYN_TCP_TLS_CLIENT_KEY_PATH"
	serverNameVariable = "DYN_TCP_TLS_SERVER_NAME"
	limitVariable      = "DYN_TCP_TLS_HANDSHAKE_TIMEOUT_SECS"
)

// TLSFromEnvironment reads the variables of the reference and the files they name. Certificates with their keys are read
// again when they change. An error names the variable; warnings tell of variables without effect.
func TLSFromEnvironment(getenv func(string) string) (t TLS, warnings []string, err error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	t.Limit = handshakeLimit
	if text := get(limitVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 3600 {
			return TLS{}, nil, fmt.Errorf("%s: got %q, must be a number from 1 to 3600", limitVariable, text)
		}
		t.Limit = time.Duration(n) * time.Second
	}
	own, err := readPair(get, certVariable, keyVariable)
	if err != nil {
		return TLS{}, nil, err
	}
	if own != nil {
		t.Requests = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get(), nil }}
	}
	if ca := get(clientCAVariable); ca != "" {
		if t.Requests == nil {
			return TLS{}, nil, fmt.Errorf("%s: needs %s and %s", clientCAVariable, certVariable, keyVariable)
		}
		if t.Requests.ClientCAs, err = readCA(clientCAVariable, ca); err != nil {
			return TLS{}, nil, err
		}
		t.Requests.ClientAuth = tls.RequireAndVerifyClientCert
	}
	t.Answers, warnings, err = clientTLS(get)
	if err != nil {
		return TLS{}, nil, err
	}
	if t.Requests != nil && t.Answers == nil {
		warnings = append(warnings, fmt.Sprintf("%s is set but neither %s nor %s: answers are not encrypted, and clients of a frontend "+
			"that expects them to be wait in vain", certVariable, caVariable, insecureVariable))
	}
	return t, warnings, nil
}

// clientTLS reads the variables of connections to frontends; nil if they are not encrypted.
func clientTLS(get func(string) string) (*tls.Config, []string, error) {
	pair, err := readPair(get, clientCertVariable, clientKeyVariable)
	if err != nil {
		return nil, nil, err
	}
	ca, insecure := get(caVariable), truthy(get(insecureVariable))
	if ca == "" && !insecure {
		var idle []string
		for _, name := range []string{clientCertVariable, serverNameVariable} {
			if get(name) != "" {
				idle = append(idle, fmt.Sprintf("%s has no effect without %s or %s", name, caVariable, insecureVariable))
			}
		}
		return nil, idle, nil
	}
	c := &tls.Config{ServerName: get(serverNameVariable), InsecureSkipVerify: insecure,
		ClientSessionCache: tls.NewLRUClientSessionCache(0)} // each answer is a connection of its own
	if pair != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.get(), nil }
	}
	if ca != "" {
		if c.RootCAs, err = readCA(caVariable, ca); err != nil {
			return nil, nil, err
		}
	}
	return c, nil, nil
}

func truthy(text string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(text))
}

func readCA(variable, path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", variable, path)
	}
	return pool, nil
}

// certificate is a certificate with its key, read again when one of the files changes.
type certificate struct {
	cert, key string // files

	mu     sync.Mutex
	latest *tls.Certificate
	stamps [2]stamp
}

// stamp tells versions of a file apart.
type stamp struct {
	at   time.Time
	size int64
}

// readPair reads a certificate and its key; nil if neither is named.
func readPair(get func(string) string, certVariable, keyVariable string) (*certificate, error) {
	c := &certificate{cert: get(certVariable), key: get(keyVariable)}
	switch {
	case c.cert == "" && c.key == "":
		return nil, nil
	case c.key == "":
		return nil, fmt.Errorf("%s: must be set because %s is", keyVariable, certVariable)
	case c.cert == "":
		return nil, fmt.Errorf("%s: must be set because %s is", certVariable, keyVariable)
	}
	if err := c.read(c.look()); err != nil {
		return nil, fmt.Errorf("%s, %s: %w", certVariable, keyVariable, err)
	}
	return c, nil
}

func (c *certificate) look() (stamps [2]stamp) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func (c *certificate) read(stamps [2]stamp) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.latest, c.stamps = &pair, stamps
	return nil
}

// get returns the certificate. Files that do not fit, as in the middle of a renewal, leave the one there was.
func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stamps := c.look(); stamps != c.stamps {
		_ = c.read(stamps)
	}
	return c.latest
}

// duplex is a connection that can be closed for writing alone.
type duplex interface {
	net.Conn
	CloseWrite() error
}

// encrypted makes a connection to a frontend an encrypted one if it is to be.
func (t *TLS) encrypted(ctx context.Context, conn *net.TCPConn, address string) (duplex, error) {
	if t.Answers == nil {
		return conn, nil
	}
	config := t.Answers.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil && config.ServerName == "" {
		config.ServerName = host
	}
	c := tls.Client(conn, config)
	if err := t.shake(ctx, c); err != nil {
		return nil, fmt.Errorf("TLS to %s: %w", address, err)
	}
	return c, nil
}

// shake completes a handshake, or closes the connection.
func (t *TLS) shake(ctx context.Context, c *tls.Conn) error {
	ctx, stop := context.WithTimeout(ctx, t.Limit)
	defer stop()
	err := c.HandshakeContext(ctx)
	if err != nil {
		_ = c.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no handshake within %v", t.Limit)
		}
	}
	return err
}
