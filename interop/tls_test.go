package interop

import (
	"strings"
	"testing"
	"time"
)

// TestTLS encrypts requests and answers between the real frontend and workers, ours and the reference's beside each
// other. Recovery queries of the router travel the same way.
func TestTLS(t *testing.T) {
	for _, mutual := range []bool{false, true} {
		t.Run(map[bool]string{false: "server certificates", true: "certificates of both"}[mutual], func(t *testing.T) {
			c := newCluster(t)
			a := newAuthority(t)
			cert, key := a.leaf("host")
			ca, certFile, keyFile := a.file("ca.pem", a.pem), a.file("cert.pem", cert), a.file("key.pem", key)
			c.env = []string{"DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "DYN_TCP_TLS_CERT_PATH=" + certFile, "DYN_TCP_TLS_KEY_PATH=" + keyFile,
				"DYN_TCP_TLS_CA_CERT_PATH=" + ca}
			if mutual {
				c.env = append(c.env, "DYN_TCP_TLS_CLIENT_CA_CERT_PATH="+ca, "DYN_TCP_TLS_CLIENT_CERT_PATH="+certFile, "DYN_TCP_TLS_CLIENT_KEY_PATH="+keyFile)
			}
			c.frontend("--router-mode", "kv")
			p := c.ours("--num-workers", "2", "--speedup-ratio", "10")
			c.serving(2)
			for range 3 {
				if c.repeats("in private") == 0 {
					t.Error("nothing of a repeated prompt is found in the cache")
				}
			}
			if _, status := p.stop(20 * time.Second); status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// TestTLSOneSided has a worker without the encryption that the frontend uses: its clients get an error, not silence.
func TestTLSOneSided(t *testing.T) {
	c := newCluster(t)
	a := newAuthority(t)
	cert, key := a.leaf("host")
	tls := []string{"DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1", "DYN_TCP_TLS_CERT_PATH=" + a.file("cert.pem", cert),
		"DYN_TCP_TLS_KEY_PATH=" + a.file("key.pem", key), "DYN_TCP_TLS_CA_CERT_PATH=" + a.file("ca.pem", a.pem)}
	c.env = tls
	c.frontend()
	c.env = nil
	c.ours()
	c.serving(1)
	body := chat("who listens?", 4)
	body["stream"] = false
	got, err := c.ask(t.Context(), "/v1/chat/completions", body, nil)
	if err != nil || got.status != 503 {
		t.Errorf("got %+v, %v, want status 503", got, err)
	}
	p := c.oursIn([]string{"DYN_TCP_TLS_CERT_PATH=" + a.file("cert.pem", cert)})
	<-p.done
	if text := p.log.String(); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, "error: DYN_TCP_TLS_KEY_PATH: must be set") {
		t.Errorf("exit status %d:\n%s", p.cmd.ProcessState.ExitCode(), text)
	}
}
