// Package status serves a worker process's health, metrics and model files over HTTP. One server speaks for all
// workers of the process.
package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mockbench/engine"
	"mockbench/engine/spawn"
)

// Options configure a Server.
type Options struct {
	Address string // host:port; port 0 is any free one
	Health  string // paths; "" is /health and /live
	Live    string
	Metrics prometheus.Gatherer

	// NeverReady answers "notready" for ever, as the reference does unless its health check is switched on.
	NeverReady bool

	// StartsReady answers "ready" whatever the endpoints say, until the process drains.
	StartsReady bool

	// Watch names the endpoints that alone decide; none: all of them.
	Watch []string
}

// FromEnv reads DYN_SYSTEM_PORT, DYN_SYSTEM_HOST, DYN_SYSTEM_HEALTH_PATH and DYN_SYSTEM_LIVE_PATH. ok is false if the
// server is not wanted. With quirks it is never ready unless DYN_SYSTEM_STARTING_HEALTH_STATUS,
// DYN_HEALTH_CHECK_ENABLED or DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS says so; the last one lists the endpoints that decide.
func FromEnv(getenv func(string) string, quirks bool) (o Options, ok bool, err error) {
	text := strings.TrimSpace(getenv("DYN_SYSTEM_PORT"))
	if text == "" {
		return o, false, nil
	}
	port, err := strconv.Atoi(text)
	if err != nil || port > 65535 {
		return o, false, &engine.SettingError{Setting: "DYN_SYSTEM_PORT", Kind: engine.KindRange, Given: text,
			Allowed: "must be a port up to 65535, 0 for any, or negative for none"}
	}
	if port < 0 {
		return o, false, nil
	}
	host := getenv("DYN_SYSTEM_HOST")
	if host == "" {
		host = "0.0.0.0"
	}
	o = Options{Address: net.JoinHostPort(host, text), Health: getenv("DYN_SYSTEM_HEALTH_PATH"), Live: getenv("DYN_SYSTEM_LIVE_PATH")}
	if quirks {
		if list := getenv("DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS"); list != "" {
			if err := json.Unmarshal([]byte(list), &o.Watch); err != nil {
				return o, false, &engine.SettingError{Setting: "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", Kind: engine.KindType, Given: list,
					Allowed: `must be a JSON list of endpoint names, for example ["generate"]`}
			}
		}
		o.StartsReady = getenv("DYN_SYSTEM_STARTING_HEALTH_STATUS") == "ready"
		o.NeverReady = !o.StartsReady && !truthy(getenv("DYN_HEALTH_CHECK_ENABLED")) && len(o.Watch) == 0
	}
	return o, true, nil
}

func truthy(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "on", "yes":
		return true
	}
	return false
}

// Server answers until it is closed.
type Server struct {
	listener net.Listener
	http     *http.Server
	start    time.Time

	mu        sync.Mutex
	endpoints map[string]bool   // readiness by name
	files     map[string]string // local file by URL path
	stopping  bool
	o         Options
}

// Listen starts the server. The process is not ready before the first endpoint is.
func Listen(o Options) (*Server, error) {
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, &engine.SettingError{Setting: "DYN_SYSTEM_PORT", Kind: engine.KindRange, Given: o.Address,
			Allowed: "must be an address that is free: " + err.Error()}
	}
	s := &Server{listener: l, start: time.Now(), o: o, endpoints: map[string]bool{},
		files: map[string]string{}}
	mux := http.NewServeMux()
	health, live := cmp.Or(o.Health, "/health"), cmp.Or(o.Live, "/live")
	mux.HandleFunc(health, get(s.health))
	if live != health {
		mux.HandleFunc(live, get(s.health))
	}
	if o.Metrics != nil {
		mux.HandleFunc("/metrics", get(promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}).ServeHTTP))
	}
	mux.HandleFunc("/metadata", get(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, "Discovery metadata not available")
	}))
	mux.HandleFunc("/engine/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, fmt.Sprintf(`{"error":"Route not found","message":"Route %s not found"}`, r.URL.Path))
	})
	mux.HandleFunc("/v1/metadata/", get(s.file))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusNotFound, "Route not found") })
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	spawn.Go("status server", func() { _ = s.http.Serve(l) })
	return s, nil
}

// Port returns the port that is served.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// SetEndpoint says whether an endpoint of the process can serve.
func (s *Server) SetEndpoint(name string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints[name] = ready
}

// RemoveEndpoint forgets an endpoint.
func (s *Server) RemoveEndpoint(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.endpoints, name)
}

// Stopping withdraws readiness: the process drains.
func (s *Server) Stopping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

// ServeFile offers a local file under prefix, which starts and ends with a slash.
func (s *Server) ServeFile(prefix, file string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[prefix+path.Base(file)] = file
}

// Close stops the server.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.http.Close()
}

// ready tells the truth: there are endpoints, those that count can serve, and the process does not drain. s.mu is held.
func (s *Server) ready() bool {
	switch {
	case s.stopping || s.o.NeverReady:
		return false
	case s.o.StartsReady:
		return true
	case len(s.o.Watch) > 0:
		return !slices.ContainsFunc(s.o.Watch, func(name string) bool { return !s.endpoints[name] })
	case len(s.endpoints) == 0:
		return false
	}
	return !slices.Contains(slices.Collect(maps.Values(s.endpoints)), false)
}

// health answers whether the process can serve.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	word := func(ready bool) string {
		if ready {
			return "ready"
		}
		return "notready"
	}
	s.mu.Lock()
	ready := s.ready()
	endpoints := map[string]string{}
	for name, ok := range s.endpoints {
		endpoints[name] = word(ok)
	}
	s.mu.Unlock()
	up := time.Since(s.start)
	var body struct {
		Status string `json:"status"`
		Uptime struct {
			Secs  uint64 `json:"secs"`
			Nanos uint32 `json:"nanos"`
		} `json:"uptime"`
		Endpoints map[string]string `json:"endpoints"`
	}
	body.Status, body.Endpoints = word(ready), endpoints
	body.Uptime.Secs, body.Uptime.Nanos = uint64(up/time.Second), uint32(up%time.Second)
	text, err := json.Marshal(body)
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(err.Error())
	}
	answer(w, status, string(text))
}

// file serves a model file byte for byte.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	name, known := s.files[r.URL.Path]
	s.mu.Unlock()
	switch {
	case !known && strings.Count(r.URL.Path, "/") < 8:
		answer(w, http.StatusNotFound, "Route not found")
		return
	case !known:
		answer(w, http.StatusNotFound, "Not found")
		return
	}
	data, err := os.ReadFile(name)
	if err != nil {
		answer(w, http.StatusInternalServerError, "the file cannot be read")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(data)
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// get refuses every method but GET and HEAD.
func get(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET,HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		h(w, r)
	}
}
