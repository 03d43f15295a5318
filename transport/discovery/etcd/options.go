// Package etcd is discovery through an etcd server: every worker holds a lease, whose id is its instance id, and all
// its records hang on that lease. A worker that dies is gone when the lease has run out.
package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"mockbench/engine"
)

// DefaultEndpoint is where a server is expected if nothing is said.
const DefaultEndpoint = "http://localhost:2379"

const (
	defaultTTL          = 30 * time.Second
	defaultStartup      = 120 * time.Second
	defaultPingInterval = 15 * time.Second
	defaultPingTimeout  = 10 * time.Second
	politePing          = 5 * time.Second // servers end connections that ping more often
)

// Options say how to reach the server and what to do when it loses us.
type Options struct {
	Endpoints      []string      // URLs
	TTL            time.Duration // of leases, whole seconds
	StartupTimeout time.Duration // how long Open tries
	PingInterval   time.Duration // of idle connections; 0 means none
	PingTimeout    time.Duration

	Username, Password string      // both or none
	TLS                *tls.Config // nil: whatever the endpoints' schemes say

	// Reregister makes a worker whose lease is lost take a new one of the same id and publish its records again, as
	// long as it takes. Otherwise the worker is lost for good.
	Reregister bool

	Log *slog.Logger // nil: nothing is logged
}

// FromEnvironment reads the options from ETCD_* variables; empty is unset. Warnings are about values that are replaced
// by defaults or have no effect.
func FromEnvironment(getenv func(string) string) (o Options, warnings []string, err error) {
	r := reader{getenv: getenv}
	o.TTL = r.seconds("ETCD_LEASE_TTL", defaultTTL, 1)
	o.StartupTimeout = r.seconds("ETCD_STARTUP_CONNECT_TIMEOUT_SECONDS", defaultStartup, 0)
	o.PingInterval = r.seconds("ETCD_KEEPALIVE_INTERVAL_SECONDS", defaultPingInterval, 0)
	o.PingTimeout = r.seconds("ETCD_KEEPALIVE_TIMEOUT_SECONDS", defaultPingTimeout, 1)
	if o.PingInterval > 0 && o.PingInterval < politePing {
		r.warn("ETCD_KEEPALIVE_INTERVAL_SECONDS: got %s, servers may end connections that ping more often than every 5 seconds",
			getenv("ETCD_KEEPALIVE_INTERVAL_SECONDS"))
	}
	if o.Endpoints, err = endpoints(getenv("ETCD_ENDPOINTS")); err != nil {
		return o, r.warnings, err
	}
	o.Username, o.Password = r.pair("ETCD_AUTH_USERNAME", "ETCD_AUTH_PASSWORD")
	o.TLS, err = r.certificates()
	return o, r.warnings, err
}

type reader struct {
	getenv   func(string) string
	warnings []string
}

func (r *reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// seconds reads a whole number of seconds.
func (r *reader) seconds(name string, def time.Duration, least int64) time.Duration {
	const most = 1 << 31
	text := strings.TrimSpace(r.getenv(name))
	if text == "" {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		r.warn("%s: got %q, must be a whole number of seconds from %d to %d; %d is used", name, text, least, int64(most), int64(def.Seconds()))
		return def
	}
	return time.Duration(n) * time.Second
}

func endpoints(text string) ([]string, error) {
	if text == "" {
		text = DefaultEndpoint
	}
	var list []string
	for e := range strings.SplitSeq(text, ",") {
		e = strings.TrimSpace(e)
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, &engine.SettingError{Setting: "ETCD_ENDPOINTS", Kind: engine.KindRange, Given: fmt.Sprintf("%q", e),
				Allowed: "must be URLs separated by commas, for example " + DefaultEndpoint}
		}
		list = append(list, e)
	}
	return list, nil
}

// pair reads two variables that mean nothing alone.
func (r *reader) pair(a, b string) (string, string) {
	x, y := r.getenv(a), r.getenv(b)
	if (x == "") != (y == "") {
		r.warn("%s and %s have no effect unless both are set", a, b)
	}
	if x == "" || y == "" {
		return "", ""
	}
	return x, y
}

// certificates reads the settings of mutual TLS, which are PEM texts.
func (r *reader) certificates() (*tls.Config, error) {
	const caName, certName, keyName = "ETCD_AUTH_CA", "ETCD_AUTH_CLIENT_CERT", "ETCD_AUTH_CLIENT_KEY"
	ca, cert, key := r.getenv(caName), r.getenv(certName), r.getenv(keyName)
	if ca == "" || cert == "" || key == "" {
		if ca+cert+key != "" {
			r.warn("%s, %s and %s have no effect unless all are set", caName, certName, keyName)
		}
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca)) {
		return nil, pemError(caName, errors.New("it has no certificate"))
	}
	client, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return nil, pemError(certName+", "+keyName, err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}, MinVersion: tls.VersionTLS12}, nil
}

// pemError does not repeat the value: it may be a key.
func pemError(name string, err error) error {
	return &engine.SettingError{Setting: name, Kind: engine.KindRange, Given: "a text that cannot be used",
		Allowed: "must be PEM text, not a path: " + err.Error()}
}
