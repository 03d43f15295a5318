package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"mockbench/engine"
)

func listen(t *testing.T, o Options) (*Server, string) {
	t.Helper()
	o.Address = "127.0.0.1:0"
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, fmt.Sprintf("http://127.0.0.1:%d", s.Port())
}

func fetch(t *testing.T, method, url string) (status int, contentType, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header.Get("Content-Type"), string(data)
}

func TestGoldenDiscoveryHTTP(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "golden")
	if root := os.Getenv("MOCKBENCH_GOLDEN"); root != "" {
		dir = root
	}
	data, err := os.ReadFile(filepath.Join(dir, "discovery", "system-http.json"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name  string
		Input struct {
			Env    map[string]string
			Method string
			Path   []string
		}
		Expect struct {
			Status      int
			ContentType *string `json:"content_type"`
			Body        *string
			JSON        *struct{ Status string }
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			env := c.Input.Env
			if env == nil {
				env = map[string]string{"DYN_SYSTEM_PORT": "0"}
			}
			o, ok, err := FromEnv(func(k string) string { return env[k] }, true)
			if err != nil || !ok {
				t.Fatalf("got %v, %v", ok, err)
			}
			s, url := listen(t, o)
			s.SetEndpoint("generate", true)
			s.SetEndpoint("worker_kv_query_source_1", true)
			for _, path := range c.Input.Path {
				status, contentType, body := fetch(t, c.Input.Method, url+path)
				if status != c.Expect.Status || c.Expect.ContentType != nil && contentType != *c.Expect.ContentType {
					t.Errorf("%s: %d %s", path, status, contentType)
				}
				if c.Expect.Body != nil && body != *c.Expect.Body {
					t.Errorf("%s: %q", path, body)
				}
				if want := c.Expect.JSON; want != nil && (!strings.HasPrefix(body, `{"status":"`+want.Status+`","uptime":{"secs":`) ||
					!strings.HasSuffix(body, `"endpoints":{"generate":"ready","worker_kv_query_source_1":"ready"}}`)) {
					t.Errorf("%s: %s", path, body)
				}
			}
		})
	}
}

func TestHealthTellsTheTruth(t *testing.T) {
	s, url := listen(t, Options{})
	check := func(when string, want int) {
		t.Helper()
		if got, _, body := fetch(t, "GET", url+"/health"); got != want {
			t.Errorf("%s: %d %s", when, got, body)
		}
	}
	check("before any endpoint", 503)
	s.SetEndpoint("generate", true)
	check("serving", 200)
	s.SetEndpoint("generate", false)
	check("an endpoint that cannot serve", 503)
	s.SetEndpoint("generate", true)
	s.Stopping()
	check("draining", 503)
}

// TestQuirksOfHealth switches readiness on as the reference knows it.
func TestQuirksOfHealth(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want int
	}{
		"nothing said":         {nil, 503},
		"health check":         {map[string]string{"DYN_HEALTH_CHECK_ENABLED": "1"}, 503}, // query is not ready
		"ready from the start": {map[string]string{"DYN_SYSTEM_STARTING_HEALTH_STATUS": "ready"}, 200},
		"by endpoint":          {map[string]string{"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate"]`}, 200},
		"by missing endpoint":  {map[string]string{"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate","other"]`}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"DYN_SYSTEM_PORT": "0"}
			maps.Copy(env, c.env)
			o, _, err := FromEnv(func(k string) string { return env[k] }, true)
			if err != nil {
				t.Fatal(err)
			}
			s, url := listen(t, o)
			s.SetEndpoint("generate", true)
			s.SetEndpoint("query", false)
			if got, _, body := fetch(t, "GET", url+"/health"); got != c.want {
				t.Errorf("got %d %s, want %d", got, body, c.want)
			}
		})
	}
	env := map[string]string{"DYN_SYSTEM_PORT": "0", "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": "generate"}
	_, _, err := FromEnv(func(k string) string { return env[k] }, true)
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) || wrong.Setting != "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS" {
		t.Errorf("got %v", err)
	}
}

func TestFilesAndMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "answer", Help: "h"})
	registry.MustRegister(gauge)
	gauge.Set(42)
	s, url := listen(t, Options{Metrics: registry})
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte("{\x00}"), 0o600); err != nil {
		t.Fatal(err)
	}
	prefix := "/v1/metadata/dynamo/backend/generate/mock/_base/"
	s.ServeFile(prefix, file)
	if status, kind, body := fetch(t, "GET", url+prefix+"config.json"); status != 200 || kind != "application/octet-stream" || body != "{\x00}" {
		t.Errorf("got %d %s %q", status, kind, body)
	}
	if status, _, body := fetch(t, "GET", url+prefix+"other.json"); status != 404 || body != "Not found" {
		t.Errorf("got %d %q", status, body)
	}
	if status, _, body := fetch(t, "GET", url+"/metrics"); status != 200 || !strings.Contains(body, "answer 42") {
		t.Errorf("got %d %q", status, body)
	}
}

func TestBadPorts(t *testing.T) {
	for _, port := range []string{"70000", "many"} {
		_, _, err := FromEnv(func(string) string { return port }, false)
		var wrong *engine.SettingError
		if !errors.As(err, &wrong) || wrong.Setting != "DYN_SYSTEM_PORT" {
			t.Errorf("%s: got %v", port, err)
		}
	}
	for _, port := range []string{"", "-1"} {
		if _, ok, err := FromEnv(func(string) string { return port }, false); ok || err != nil {
			t.Errorf("%q: got %v, %v", port, ok, err)
		}
	}
	s, _ := listen(t, Options{})
	_, err := Listen(Options{Address: fmt.Sprintf("127.0.0.1:%d", s.Port())})
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) {
		t.Errorf("port in use: got %v", err)
	}
}
