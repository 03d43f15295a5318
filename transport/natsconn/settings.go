// Package natsconn connects to a NATS server as the environment says: it waits for a server that is not up yet, and
// comes back by itself after the loss of one.
package natsconn

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"mockbench/engine"
)

// DefaultServer is where a server is looked for unless NATS_SERVER says otherwise.
const DefaultServer = "nats://localhost:4222"

// defaultStartup is how long a start waits for a server.
const defaultStartup = 2 * time.Minute

// defaultUser is the name and the password that are sent if the environment has neither; servers without accounts
// ignore them.
const defaultUser = "user"

// Settings are what the environment says about the NATS server.
type Settings struct {
	Servers string        // URLs, separated by commas
	Startup time.Duration // how long Connect tries
	auth    string        // for people
	options []nats.Option
}

// FromEnvironment reads NATS_SERVER, NATS_STARTUP_CONNECT_TIMEOUT_SECONDS, the first complete one of
// NATS_AUTH_USERNAME with NATS_AUTH_PASSWORD, NATS_AUTH_TOKEN, NATS_AUTH_NKEY (a seed) and NATS_AUTH_CREDENTIALS_FILE, and
// for TLS NATS_TLS_CA_CERT_PATH, NATS_TLS_CLIENT_CERT_PATH with NATS_TLS_CLIENT_KEY_PATH, and NATS_TLS_INSECURE. As
// in Dynamo, those for TLS need servers whose addresses begin with tls://. Empty variables count as unset.
func FromEnvironment(getenv func(string) string) (Settings, error) {
	s := Settings{Servers: strings.TrimSpace(getenv("NATS_SERVER")), Startup: defaultStartup}
	if s.Servers == "" {
		s.Servers = DefaultServer
	}
	for _, server := range strings.Split(s.Servers, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err != nil || strings.Contains(server, "://") && u.Host == "" {
			return s, wrong("NATS_SERVER", s.Redacted(), "must be the address of a server, such as "+DefaultServer)
		}
	}
	if text := strings.TrimSpace(getenv("NATS_STARTUP_CONNECT_TIMEOUT_SECONDS")); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0 && seconds < 1e9) {
			return s, wrong("NATS_STARTUP_CONNECT_TIMEOUT_SECONDS", text, "must be a number of seconds, 0 for a single attempt")
		}
		s.Startup = time.Duration(seconds * float64(time.Second))
	}
	if err := s.authenticate(getenv); err != nil {
		return s, err
	}
	return s, s.encrypt(getenv)
}

func wrong(setting, given, allowed string) error {
	return &engine.SettingError{Setting: setting, Kind: engine.KindRange, Given: given, Allowed: allowed}
}

func (s *Settings) authenticate(getenv func(string) string) error {
	user, password := getenv("NATS_AUTH_USERNAME"), getenv("NATS_AUTH_PASSWORD")
	token, seed, file := getenv("NATS_AUTH_TOKEN"), getenv("NATS_AUTH_NKEY"), getenv("NATS_AUTH_CREDENTIALS_FILE")
	switch {
	case user != "" && password != "":
		s.auth = fmt.Sprintf("user %q of NATS_AUTH_USERNAME", user)
		s.options = append(s.options, nats.UserInfo(user, password))
	case user != "" && token+seed+file == "":
		return wrong("NATS_AUTH_PASSWORD", `""`, "must be set together with NATS_AUTH_USERNAME")
	case token != "":
		s.auth = "the token of NATS_AUTH_TOKEN"
		s.options = append(s.options, nats.Token(token))
	case seed != "":
		return s.useSeed(seed)
	case file != "":
		s.auth = fmt.Sprintf("NATS_AUTH_CREDENTIALS_FILE %s", file)
		s.options = append(s.options, nats.UserCredentials(file))
	default:
		s.auth = fmt.Sprintf("user %q because no NATS_AUTH_ variable is set", defaultUser)
		s.options = append(s.options, nats.UserInfo(defaultUser, defaultUser))
	}
	return nil
}

func (s *Settings) useSeed(seed string) error {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return wrong("NATS_AUTH_NKEY", "a value of "+strconv.Itoa(len(seed))+" characters", "must be the seed of a user key: "+err.Error())
	}
	public, err := pair.PublicKey()
	if err != nil {
		return wrong("NATS_AUTH_NKEY", "a seed", "must be the seed of a user key: "+err.Error())
	}
	s.auth = "the key of NATS_AUTH_NKEY"
	s.options = append(s.options, nats.Nkey(public, pair.Sign))
	return nil
}

func (s *Settings) encrypt(getenv func(string) string) error {
	var set []string
	if ca := getenv("NATS_TLS_CA_CERT_PATH"); ca != "" {
		set = append(set, "NATS_TLS_CA_CERT_PATH")
		if err := nats.RootCAs(ca)(&nats.Options{}); err != nil {
			return wrong("NATS_TLS_CA_CERT_PATH", ca, "must be a file of certificates in PEM form: "+err.Error())
		}
		s.options = append(s.options, nats.RootCAs(ca))
	}
	cert, key := getenv("NATS_TLS_CLIENT_CERT_PATH"), getenv("NATS_TLS_CLIENT_KEY_PATH")
	if (cert == "") != (key == "") {
		return wrong("NATS_TLS_CLIENT_CERT_PATH, NATS_TLS_CLIENT_KEY_PATH", strconv.Quote(cert)+" and "+strconv.Quote(key),
			"must be set together")
	}
	if cert != "" {
		set = append(set, "NATS_TLS_CLIENT_CERT_PATH")
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			return wrong("NATS_TLS_CLIENT_CERT_PATH, NATS_TLS_CLIENT_KEY_PATH", cert+" and "+key,
				"must be a certificate and its key in PEM form: "+err.Error())
		}
		s.options = append(s.options, nats.ClientCert(cert, key))
	}
	switch strings.ToLower(getenv("NATS_TLS_INSECURE")) {
	case "1", "true", "yes", "on":
		set = append(set, "NATS_TLS_INSECURE")
		s.options = append(s.options, func(o *nats.Options) error {
			if o.TLSConfig == nil {
				o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			o.TLSConfig.InsecureSkipVerify = true
			return nil
		})
	}
	return s.checkScheme(set)
}

// checkScheme returns an error if settings for TLS are given for a server that is not addressed as one with TLS: whoever
// gives them does not want an unencrypted connection.
func (s *Settings) checkScheme(set []string) error {
	if len(set) == 0 {
		return nil
	}
	for _, server := range strings.Split(s.Servers, ",") {
		if !strings.HasPrefix(strings.TrimSpace(server), "tls://") {
			return wrong("NATS_SERVER", s.Redacted(), "must begin with tls:// because "+strings.Join(set, ", ")+" is set")
		}
	}
	return nil
}

// Redacted returns the servers without passwords.
func (s *Settings) Redacted() string {
	list := strings.Split(s.Servers, ",")
	for i, server := range list {
		if u, err := url.Parse(strings.TrimSpace(server)); err == nil {
			list[i] = u.Redacted()
		}
	}
	return strings.Join(list, ",")
}
