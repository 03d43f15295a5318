package natsconn

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	attemptTimeout = 2 * time.Second
	firstPause     = 100 * time.Millisecond // after a failed attempt; doubles
	longestPause   = 2 * time.Second
	noticeInterval = 10 * time.Second // between notices that the server is still waited for

	// flushTimeout bounds how long writing to a server that takes nothing holds the connection up.
	flushTimeout = time.Second
	pingInterval = 10 * time.Second // two of them without an answer are the loss of the server
)

// Connect returns a connection to the server. It tries again, with growing pauses, for as long as the settings say;
// what trying again cannot change, such as a refused password, is an error at once. name is shown to the server's
// operators. The connection comes back by itself after a loss, with its subscriptions.
func Connect(ctx context.Context, s Settings, name string, log *slog.Logger) (*nats.Conn, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	dial := &dialer{Dialer: net.Dialer{Timeout: attemptTimeout}}
	options := append(s.options[:len(s.options):len(s.options)], lasting(name, log)...)
	options = append(options, nats.SetCustomDialer(dial))
	begin, pause, noticed := time.Now(), firstPause, time.Time{}
	for attempt := 1; ; attempt++ {
		c, err := nats.Connect(s.Servers, options...)
		if err == nil {
			log.Info("connected to NATS", "server", c.ConnectedUrlRedacted(), "attempts", attempt)
			return c, nil
		}
		if errors.Is(err, nats.ErrNoServers) && dial.err != nil {
			err = dial.err // says why
		}
		left := s.Startup - time.Since(begin)
		if permanent(err) {
			return nil, fmt.Errorf("NATS_SERVER: no connection to %s as %s: %w", s.Redacted(), s.auth, err)
		}
		if left <= 0 {
			return nil, fmt.Errorf("NATS_SERVER: no connection to %s within %v (NATS_STARTUP_CONNECT_TIMEOUT_SECONDS), attempts: %d, last: %w",
				s.Redacted(), s.Startup, attempt, err)
		}
		if time.Since(noticed) >= noticeInterval {
			noticed = time.Now()
			log.Warn("waiting for NATS", "server", s.Redacted(), "for_seconds", int(left.Seconds()), "error", err)
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause = min(2*pause, longestPause)
	}
}

// dialer remembers why the last attempt to reach a server failed, which the client does not tell.
type dialer struct {
	net.Dialer
	err error // written by one attempt at a time
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	d.err = err
	return c, err
}

// lasting returns the options of a connection that outlives its server.
func lasting(name string, log *slog.Logger) []nats.Option {
	var lost time.Time // the callbacks of a connection run one after the other
	return []nats.Option{
		nats.Name(name), nats.Timeout(attemptTimeout), nats.FlusherTimeout(flushTimeout), nats.PingInterval(pingInterval),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(firstPause), nats.ReconnectJitter(firstPause, firstPause),
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			if lost = time.Now(); !c.IsClosed() {
				log.Warn("lost the connection to NATS, reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			log.Info("connected to NATS again", "server", c.ConnectedUrlRedacted(), "after_ms", time.Since(lost).Milliseconds())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			log.Error("NATS", "error", err, "subject", subject)
		}),
	}
}

// permanent reports whether trying again would end in the same way.
func permanent(err error) bool {
	for _, e := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrSecureConnRequired, nats.ErrSecureConnWanted,
		fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, e) {
			return true
		}
	}
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
